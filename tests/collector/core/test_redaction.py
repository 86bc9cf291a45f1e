"""Looking for secrets in one pass finds what looking for one word after the other finds."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from strandline.core.redaction import is_suspicious, redact_json

WORDS = [
    *(b"jdbc:", b"passw", b"pwd", b"secret", b"token", b"credential", b"key", b"auth", b"signature", b"jaas", b"sas"),
    *(b"identified", b"options", b"properties", b"environment", b"with(", b"with (", b"\\/", b"\\u00"),
]
ADDRESS = re.compile(rb"://[^\"/\s]*@|://[^\"\s]*[?;]|://[^\"\s]*#[^/]")
SPACES = (b" ", b"\t", b"\n", b"\r", b"\f", b"\v", b"\x1c", b"\x85", b"\xc2\xa0", b"\xe2\x80\xa8")

cased = st.builds(
    lambda word, upper: bytes(
        byte ^ 0x20 * (up and chr(byte).isalpha()) for byte, up in zip(word, upper, strict=False)
    ),
    st.sampled_from(WORDS),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
cut = st.builds(lambda word, length: word[:length], cased, st.integers(1, 11))
pieces = st.one_of(
    *(cased, cut, st.binary(max_size=20), st.text(max_size=10).map(str.encode), st.sampled_from(SPACES)),
    st.sampled_from(
        (b"://", b"@", b"?", b";", b"#", b"#/", b"/", b'"', b"\\", b"\\u0070", b"\xc5\xbf", b"\xe2\x84\xaa")
    ),
)
bodies = st.lists(pieces, max_size=30).map(b"".join)


@given(bodies)
@example(b'{"a": "' + b"x" * 20_000 + b'PassWord"}')
@example(b'{"a": "\\u0070assword"}')
@example(b'{"a": "://x#')
@example("{'a': '\u017fecret to\u212aen'}".encode())
def test_a_facet_is_suspicious_exactly_if_a_word_or_an_address_with_more_than_a_place_is_in_it(body: bytes) -> None:
    address = ADDRESS.search(body) is not None

    assert is_suspicious("custom", body) is (address or any(word in body.lower() for word in WORDS))
    assert is_suspicious("nominalTime", body) is address
    assert is_suspicious("spark_properties", body)


def test_names_of_tables_and_columns_are_not_looked_at_closer() -> None:
    body = (
        b'{"_schemaURL": "https://o.io/1-0-1/S.json#/$defs/S", "fields": [{"name": "amount", "type": "decimal(18,2)"}]}'
    )

    assert not is_suspicious("schema", body)


def test_a_word_in_any_case_or_escaped_is_a_reason_to_take_the_secret_out() -> None:
    plain, escaped = b'{"PassWord": "p"}', b'{"\\u0070assword": "p"}'

    assert is_suspicious("custom", plain)
    assert is_suspicious("custom", escaped)
    assert redact_json("custom", plain) == b'{"PassWord":"[redacted]"}'
    assert redact_json("custom", escaped) == b'{"password":"[redacted]"}'
