"""Secrets are found anywhere in a document; all other values stay, and so do documents without any."""

import json
import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.core.openlineage.events import decode, unread
from strandline.core.redaction.json import (
    STRINGS,
    has_secret,
    is_suspicious,
    redact_bytes,
    redact_json,
)
from worlds.builders import Json, dataset, encode, event
from worlds.redaction_examples import FORMS, TOKENS


def test_table_and_column_names_are_not_suspicious() -> None:
    body = b'{"_schemaURL": "https://o.io/1-0-1/S.json#/$defs/S", "fields": [{"name": "amount", "type": "decimal(18,2)"}]}'

    assert not is_suspicious("schema", body)
    assert is_suspicious("spark_properties", b"{}")


@pytest.mark.parametrize(
    ("plain", "secret"),
    [
        ("2026-11-23T08:34:07Z", "7z a -phunter2 x.7z"),
        ("iceberg.db.orders", "icebergS3('https://b/t', 'id', 'hunter2')"),
        ("s3://bucket/mysql/redis", "mysql -h db -phunter2"),
        ("postgresql://db:5432", "postgresql('db:5432', 'd', 't', 'ann', 'hunter2')"),
    ],
)
def test_only_calls_and_commands_are_suspicious_not_their_words(plain: str, secret: str) -> None:
    assert not is_suspicious("custom", encode({"x": plain}))
    assert is_suspicious("custom", encode({"x": secret}))
    assert b"hunter2" not in redact_json("custom", encode({"x": secret}))


def test_secret_words_are_found_in_any_case_and_escaped() -> None:
    plain, escaped = b'{"PassWord": "p"}', b'{"\\u0070assword": "p"}'

    assert is_suspicious("custom", plain)
    assert is_suspicious("custom", escaped)
    assert json.loads(redact_json("custom", plain)) == {"PassWord": "[redacted]"}
    assert json.loads(redact_json("custom", escaped)) == {"password": "[redacted]"}


@pytest.mark.parametrize(
    "facet",
    [
        b'{"password": ["hunter2", ["hunter2"]], "n": 1}',
        b'{"password": 27182, "hunter": [{"pwd": 27182}]}',
        b'{"credentials": {"value": "hunter2", "deeper": {"more": ["hunter2"]}}}',
        b'{"environmentVariables": {"HOME": "hunter2"}}',
        b'{"a": {"n": 1e400, "m": ' + b"9" * 5000 + b'}, "password": "hunter2"}',
        b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b', "password": "hunter2"}',
        b'{"a": ' + b'{"secret": ' * 5000 + b'"hunter2"' + b"}" * 5000 + b"}",
    ],
)
def test_redaction_removes_the_secret_and_nothing_else(facet: bytes) -> None:
    assert is_equal(redact_json("custom", facet), without_secrets(facet))


@pytest.mark.parametrize(
    ("facet", "kept"),
    [
        (b'{"password": "hunter2", "password": ""}', {"password": ""}),
        (b'{"a": [{"password": "hunter2", "p\\u0061ssword": ""}]}', {"a": [{"password": ""}]}),
        (b'{"x": {"password": "hunter2"}, "x": 1}', {"x": 1}),
        (b'{"n": %s, "password": "hunter2", "password": null}' % (b"9" * 300), None),
    ],
)
def test_the_first_of_two_members_with_one_name_is_gone(facet: bytes, kept: Json | None) -> None:
    body = b'{"extra": %s, "run": {"facets": {"x": %s}}}' % (facet, facet)

    assert kept is None or json.loads(redact_json("custom", facet)) == kept
    assert b"hunter2" not in redact_json("custom", facet)
    assert has_secret(body)
    assert b"hunter2" not in redact_bytes(body)


def test_two_hidden_names_stay_two_members() -> None:
    names = (f"ghp_16C7e42F292c6912E7710c838347Ae178B4{end}" for end in "abc")
    kept = redact_json("custom", encode(dict(zip(names, (1, 2, 3), strict=True))))

    assert json.loads(kept) == {"[redacted]": 1, "[redacted] 2": 2, "[redacted] 3": 3}
    assert redact_json("custom", kept) == kept


def without_secrets(facet: bytes) -> bytes:
    return facet.replace(b"hunter2", b"[redacted]").replace(b"27182", b'"[redacted]"')


def is_equal(document: bytes, other: bytes) -> bool:
    """Return whether two documents are equal, whatever their blanks."""
    return document == other or msgspec.json.decode(document) == msgspec.json.decode(other)


def test_only_harmless_properties_stay() -> None:
    facet = b'{"properties": {"spark.master": "yarn", "spark.x": ["p"], "spark.y": "p", "spark.y": "", "z": {"a": 1}}}'
    only_repeated = b'{"properties": {"spark.y": "p", "spark.y": ""}}'

    kept = {
        "spark.master": "yarn",
        "spark.x": ["[redacted]"],
        "spark.y": "",
        "z": {"a": "[redacted]"},
    }

    assert json.loads(redact_json("spark_properties", facet)) == {"properties": kept}
    assert json.loads(redact_json("", b'{"spark_properties": %s}' % facet)) == {
        "spark_properties": {"properties": kept}
    }
    assert redact_json("spark_properties", only_repeated) == b'{"properties":{"spark.y":""}}'


def test_columns_and_facets_may_be_named_like_secrets() -> None:
    origin = {
        "inputFields": [{"namespace": "n", "name": "t", "field": "pwd"}],
        "transformationType": "MASKED",
    }
    facets = {
        "columnLineage": {"fields": {"password": origin}},
        "auth_statistics": {"by": "x", "columnMetrics": {}},
    }
    body = encode({"outputs": [{"facets": facets}]})

    assert redact_json("", body) is body


# The words and signs of the examples, and of what is hidden by other rules than forms.
VOCABULARY = {
    piece
    for hides, keeps in FORMS.values()
    for text in (*hides, *keeps)
    for piece in re.findall(r"[\w.-]+|\s+|[^\w\s]+", text)
}
OTHERS = (
    *(example for hides, _ in TOKENS.values() for example in hides),
    *(
        "jdbc:",
        "s3://b/",
        "https://hooks.x/",
        "?sig=",
        "?a=",
        "@",
        "user:",
        "curl",
        " -u ",
        "PWD={",
    ),
    *("WITH", "OPTIONS", "ENCRYPTION", "(", ")", "hmac(", "aes_encrypt(", "option(", "--conf "),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "<![CDATA[", "[redacted]"),
    *("'", '"', "\\", '\\"', '\\\\\\"', '"""', "$a$", "\f", "\xa0", "\u017fecret", "\u212aEY"),
)
fragments = st.sampled_from(sorted({*VOCABULARY, *OTHERS}))
texts = st.lists(fragments, max_size=14).map("".join)
cut_events = st.builds(lambda text, end: encode({"query": text})[:end], texts, st.integers(5, 99))


@given(st.one_of(texts.map(str.encode), cut_events, st.binary(max_size=99)))
@example(b"CREDENTIALS=(s3a:'x'\"\"&")
@example(b"tokenSET IDENTIFIED BY \"\"''\\<")
@example(b"=\\s3a://jdbc:oracle:thin:)s3a://@")
def test_redaction_is_idempotent(body: bytes) -> None:
    once = redact_bytes(body)

    assert redact_bytes(once) == once


@given(texts, st.booleans())
@example("OPTIONS dbPassSET '", False)
@example("WITH\xa0(a 'b')", False)
def test_redacted_text_was_suspicious_and_does_not_change_again(
    text: str, ascii_only: bool
) -> None:
    body = json.dumps({"x": text}, ensure_ascii=ascii_only).encode()
    kept = redact_json("custom", body)

    assert redact_json("custom", kept) == kept
    assert kept == body or (is_suspicious("custom", body) and has_secret(body))


DELTA_LOG = dataset("/t/_delta_log/1.json", "file", own={"x": {"password": "p"}})


@pytest.mark.slow
def test_many_datasets_before_the_job_are_scanned_once() -> None:
    inputs = [dataset(f"t{number}", x={"number": number}) for number in range(200_000)]
    body = json.dumps(event(inputs=inputs, job_facets={"y": {}}), sort_keys=True).encode()

    assert unread(decode(body), body) == body


@pytest.mark.parametrize(
    "part",
    [
        {"producer": "https://ann:p@ci/x"},
        {"extra": {"password": "p"}},
        {"extra": {"spark_properties": {"properties": {"spark.x": "p"}}}},
        {"extra": {"environmentVariables": ["p"]}},
        {"extra": "CREATE TABLE t\nWITH (code = 'p4ss')"},
        {"dataset": dataset("t", x={"password": "p"})},
        {"inputs": [DELTA_LOG]},
        {"outputs": [{"namespace": "n", "name": "t", "inputFacets": {"x": {"password": "p"}}}]},
    ],
)
def test_secret_outside_known_facets_is_found(part: Json) -> None:
    body = encode({**event(inputs=[dataset("a")]), **part})

    assert has_secret(unread(decode(body), body))


@pytest.mark.parametrize(
    "facet",
    [
        b'{"Authorization": "hunter2"}',
        b'{"passphrase": "hunter2", "db_pass": "hunter2", "dbPass": "hunter2", "Cookie": "hunter2", "ssh_key": "hunter2"}',
        b'{"parameters": [{"key": "password", "name": "x", "value": "hunter2"}, {"key": "n", "value": "x"}]}',
        b'{"value": "hunter2", "name": "DB_PASSWORD"}',
        b'{"value": ["hunter2", {"n": 27182, "value": "hunter2"}], "key": "api_key", "other": "x"}',
        b'[{"value": {"value": "hunter2"}, "key": "token"}, {"value": "x", "key": "y"}]',
        b'{"environmentVariables": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "hunter2"}]}',
        b'{"environmentVariables": {"name": "hunter2"}}',
        b'{"rowCount": 1, "password": "hunter2", "note": "OPTIONS(password \'hunter2\')"}',
        b'{"configs": ["database.user=u", "database.password=hunter2"]}',
        b'{"args": ["mysql", "--password", "hunter2", "--api-key", 27182, "-x", "y"]}',
        b'{"env": ["DB_PASSWORD", "hunter2"], "more": [["password", "hunter2"], ["user", "u"], ["token" , 27182 ]]}',
        b'[["fs.s3a.secret.key", "hunter2"]]',
        b'{"env": [{"key": "DB_PASSWORD", "val": "hunter2"}, {"val": "hunter2", "name": "token"}]}',
        b'{"x": "<password>hunter2</password>", "y": "s3.secret-key: hunter2", "z": "config[\'password\'] = \'hunter2\'"}',
    ],
)
@pytest.mark.parametrize("key", ["custom", "outputStatistics"])
def test_secret_is_recognized_by_its_neighbouring_name(facet: bytes, key: str) -> None:
    kept = redact_json(key, facet)

    assert json.loads(kept) == json.loads(without_secrets(facet))
    assert redact_json(key, kept) == kept
    assert is_suspicious(key, facet)


@pytest.mark.parametrize(
    "facet",
    [
        {"fields": [{"name": "password", "type": "string", "description": "x"}]},
        {"tags": [{"key": "password", "value": "masked", "source": "x"}]},
        {
            "prompt_tokens": 5,
            "maxTokens": 6,
            "token_count": 7,
            "tokenizer": "bert",
            "total_tokens": "8",
        },
        {"author": "Ann", "authority": "x", "authenticationType": "kerberos"},
        {"parameters": [{"key": "day", "value": "2026-11-22"}], "passenger": "x", "passed": "y"},
        {
            "partition_key": "x",
            "args": ["--password", "--verbose"],
            "columns": [["password", "email"], ["A_TOKEN", "id"]],
        },
        {
            "list": ["password", "email"],
            "three": ["DB_PASSWORD", "x", "y"],
            "names": ["x", "DB_PASSWORD"],
        },
        {"fields": [{"name": "password_hash", "type": "string"}, {"name": "key", "val": 5}]},
    ],
)
def test_values_of_harmless_names_are_kept(facet: Json) -> None:
    body = encode(facet)

    assert redact_json("tags" if "tags" in facet else "custom", body) is body


def test_nested_json_text_stays_valid_json() -> None:
    inner = json.dumps({"password": "hunter2", "pin": 1, "secret": 27182, "x": 'a "b"'})
    middle = json.dumps({"deeper": inner, "token": 'hun"ter2', "y": [1]})
    kept = json.loads(redact_json("custom", json.dumps({"config": middle}).encode()))["config"]
    outer, innermost = json.loads(kept), json.loads(json.loads(kept)["deeper"])

    assert outer == {"deeper": outer["deeper"], "token": "[redacted]", "y": [1]}
    assert innermost == {"password": "[redacted]", "pin": 1, "secret": "[redacted]", "x": 'a "b"'}


def test_text_beyond_the_secret_limit_is_hidden_without_inspection() -> None:
    """Inspecting each text takes 30 µs, seconds for a body of 2 MB; harmless texts stay."""
    texts = [f"pwd=x{number} and y" for number in range(STRINGS + 10)]
    kept = json.loads(
        redact_json(
            "custom", json.dumps({"list": [*texts, "harmless"], "x": {"password": 1}}).encode()
        )
    )

    assert set(kept["list"][:STRINGS]) == {"pwd=[redacted] and y"}
    assert set(kept["list"][-8:]) == {"[redacted]", "harmless"}
    assert kept["x"] == {"password": "[redacted]"}
