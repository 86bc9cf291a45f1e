"""Small bodies are packed with a shared dictionary and read in both formats."""

from hashlib import sha256
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from strandline.core.openlineage.facets import DATASET as OF_DATASET
from strandline.core.openlineage.facets import INPUT, JOB, OUTPUT, RUN
from strandline.history.compare import differences
from strandline.runtime.follower import Follower
from strandline.store.catalog.lists import barriers_page
from strandline.store.lineage.facets import facets_of
from strandline.store.lineage.lookup import job_of
from strandline.store.schema.tables import facets, job_barriers
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.engine import make_engine, migrate
from strandline.store.sql.small_bodies import COMMON, MARK, SmallPacker
from strandline.store.versions.initial_offsets import initial_pins
from worlds.builders import NOON, Json, dataset, event, rows, store

SPECIFIED = "https://openlineage.io/spec/facets"
STATISTICS = (
    b'{"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark", "_schemaURL": "'
    + f"{SPECIFIED}/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet".encode()
    + b'", "rowCount": 123456, "size": 4096}'
)
STORED = bytes.fromhex(
    "f553310a60070025010058313233343536343039367d070037c4562f432670c59cd036078426740a6c8581e45840"
)
"""What every store has of it."""


def test_bodies_stored_in_the_first_format_stay_readable() -> None:
    """A changed dictionary needs another format mark; this one must stay readable."""
    assert (
        sha256(COMMON).hexdigest()
        == "ecc8c6a4e945d54bc3e01f705c299f8435636fe8027638d02dd64d7a83ed2087"
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


def facet(schema: str, **content: Any) -> Json:
    """A facet as producers write it."""
    return {
        "_producer": f"https://etl.example.org/{'long/' * 9}",
        "_schemaURL": f"{SPECIFIED}/1-0-1/{schema}.json",
        **content,
    }


TOLD = [
    event(
        "RUNNING",
        run,
        seconds=run,
        facets={
            "processing_engine": facet("ProcessingEngineRunFacet", name="spark", version="4.1.4"),
            "strandline_barrier": facet(
                "StrandlineBarrierRunFacet",
                barrierId=run, queryId="q", phase="committed", group="d", generation=7,
                sources=[{"description": "iceberg", "initialOffset": f'{{"snapshot_id": 400{run}}}'}],
            ),
            "odd": facet("Odd", text=f"\N{SNOWMAN} {run}"),
        },
        job_facets={"sql": facet("SQLJobFacet", query=f"SELECT {run}")},
        inputs=[dataset("bank.a", documentation=facet("DocumentationDatasetFacet", description="all accounts"))],
        outputs=[dataset("bank.b", own={"outputStatistics": facet("OutputStatisticsOutputDatasetFacet", rowCount=run)})],
    )
    for run in (1, 2)
]  # fmt: skip


def shown(engine: Engine) -> list[Any]:
    """All facets of all that have any, by kind.

    The job's barriers, what its query began with, and what was committed.
    """
    with Follower(engine).model():
        facts = [bytes(body) for (body,) in rows(engine, "SELECT body FROM version_facts")]
    with engine.connect() as connection:
        job = job_of(connection, "tests", "etl")
        barriers = barriers_page(connection, job, 10, None)
        pins = initial_pins(connection, [("tests", "etl")])
        found: dict[Any, Any] = {
            kind: facets_of(
                connection,
                kind,
                [id_ for (id_,) in rows(connection, "SELECT DISTINCT entity_id FROM facets")],
            )
            for kind in (RUN, JOB, OF_DATASET, INPUT, OUTPUT)
        }
    answers = orjson.dumps(
        [found, barriers, [pin.snapshot for pin in pins]], option=orjson.OPT_NON_STR_KEYS
    )
    return [*orjson.loads(answers), facts]


def unpack_all(engine: Engine) -> int:
    """Write every packed body as it came, as bodies that packing would not shorten are.

    Return how many that were.
    """
    changed = 0
    with engine.begin() as connection:
        for table, column in ((facets, facets.c.body), (job_barriers, job_barriers.c.facet)):
            for row in connection.execute(table.select().where(column.is_not(None))).all():
                this = [key == row._mapping[key] for key in table.primary_key.columns]
                plain = expand(bytes(row._mapping[column]))
                changed += plain != bytes(row._mapping[column])
                connection.execute(table.update().where(*this).values({column.name: plain}))
    return changed


def test_packed_and_unpacked_stores_show_the_same(engine: Engine) -> None:
    store(engine, TOLD[:1])
    packed = shown(engine)
    assert unpack_all(engine) > 6

    assert shown(engine) == packed
    assert all(
        told in str(packed)
        for told in ("all accounts", "['4001']", '"generation":7', "'initialOffset'")
    )

    store(engine, TOLD[1:])
    mixed = shown(engine)
    assert unpack_all(engine) > 6
    assert shown(engine) == mixed
    assert "\N{SNOWMAN} 2" in str(mixed)


def test_store_comparison_ignores_packing(engine: Engine, tmp_path: Any) -> None:
    other = make_engine(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(other)
    try:
        for each in (engine, other):
            store(each, TOLD, received_at=NOON)
        unpack_all(engine)

        assert differences(engine, other) == {}
    finally:
        other.dispose()
