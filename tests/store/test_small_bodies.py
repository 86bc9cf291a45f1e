"""Small bodies are packed with a shared dictionary and read in both formats."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from strandline.store.sql.compression import expand, expander
from strandline.store.sql.small_bodies import COMMON, MARK, SmallPacker

SPECIFIED = "https://openlineage.io/spec/facets"
STATISTICS = (
    b'{"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark", "_schemaURL": "'
    + f"{SPECIFIED}/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet".encode()
    + b'", "rowCount": 123456, "size": 4096}'
)
STORED = bytes.fromhex("f553310a600700cd000058313233343536343039367d0300b8815bbd0c99a051a10c10")
"""What every store has of it."""


def test_bodies_stored_in_the_first_format_stay_readable() -> None:
    """A changed dictionary needs another format mark; this one must stay readable."""
    assert (
        sha256(COMMON).hexdigest()
        == "489685114ab1e212c1b1bbe4ce7105a689df786a2753accc8adaf855f6129342"
    )
    assert expand(STORED) == expander()(STORED) == expand(memoryview(STORED)) == STATISTICS  # type: ignore[arg-type]


def test_packed_facet_takes_a_fifth_of_its_size() -> None:
    assert len(SmallPacker().pack(STATISTICS)) * 5 < len(STATISTICS)


@given(
    st.binary(max_size=300).filter(lambda body: body[:4] != MARK)
    | st.text(max_size=1000).map(str.encode)
)
def test_body_is_read_back_unchanged(body: bytes) -> None:
    stored = SmallPacker().pack(body)

    assert expand(stored) == expander()(stored) == body
    assert len(stored) <= len(body)
