"""Narrowed access: SQL and `Access.allows` agree, and no query bypasses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, insert, select, text

from strandline.core.access.granted import EVERYTHING, NOTHING, Access
from strandline.core.access.hidden import HiddenNames
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import ALL
from strandline.store.catalog.lists import datasets_page
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.run_tables import jobs, namespaces
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.builders import NOON, Json, dataset, event, store, symlink

NOON_MICROS = micros_of(NOON)
SIGNS = "ab*?%_![]'\\:/.-^AÄ\n"
NAMED = [
    "a",
    "ab",
    "A",
    "a%b",
    "a_b",
    "a[b]",
    "a'b",
    "a!b",
    "a\\b",
    "a/b/c",
    "Äa",
    "a\nb",
    "a:b",
    "[",
    "",
    "-",
    "^a",
]


def access(*patterns: str) -> Access:
    return Access("test", frozenset(), patterns)


def seen(engine: Engine, patterns: tuple[str, ...]) -> set[str]:
    with reading(narrowed(engine, access(*patterns))).connect() as connection:
        return set(connection.scalars(select(namespaces.c.name)))


@pytest.mark.parametrize("example", range(2))
def test_sql_and_access_allows_agree_on_every_pattern(engine: Engine, example: int) -> None:
    with engine.begin() as connection:
        connection.execute(
            insert(namespaces), [{"id": id_, "name": name} for id_, name in enumerate(NAMED)]
        )

    @given(st.lists(st.text(SIGNS, min_size=1, max_size=5), max_size=3))
    def agree(patterns: list[str]) -> None:
        asked = tuple(patterns)
        assert seen(engine, asked) == {name for name in NAMED if access(*asked).allows(name)}

    agree()
    assert seen(engine, ("a*",)) == {name for name in NAMED if name.startswith("a")}


QUERIES = (
    "SELECT name FROM jobs",
    'SELECT name FROM "jobs"',
    "WITH jobs_too AS (SELECT * FROM jobs) SELECT name FROM jobs_too",
    "WITH RECURSIVE down(name) AS (SELECT name FROM jobs UNION SELECT name FROM down) SELECT name FROM down",
    "SELECT one.name FROM jobs AS one JOIN jobs other ON other.id = one.id",
    "SELECT name FROM (SELECT name FROM jobs UNION ALL SELECT name FROM jobs) both_of_them",
    "SELECT job FROM source_job_lineage",
    "SELECT job_id FROM __META_ETL_SOURCE",
)


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_shows_another_namespace(engine: Engine, query: str) -> None:
    theirs = event(
        "START", 2, "theirs", inputs=[dataset("b", "theirs")], outputs=[dataset("c", "theirs")]
    )
    theirs["job"]["namespace"] = "theirs"
    store(
        engine,
        [
            event(
                "START", 1, "ours", inputs=[dataset("a", "tests")], outputs=[dataset("d", "tests")]
            ),
            theirs,
        ],
    )

    def names(of: Connection) -> set[str]:
        return {row[0] for row in of.execute(text(query))}

    with reading(narrowed(engine, access("tests"))).connect() as ours:
        assert names(ours) == {"ours"}
        assert set(ours.scalars(select(datasets.alias("d").c.name))) == {"a", "d"}
        assert ours.execute(select(raw_events)).all() == []
        assert {
            row.name for row in ours.execution_options(stream_results=True).execute(select(jobs))
        } == {"ours"}
    with reading(narrowed(engine, NOTHING)).connect() as nobodys:
        assert names(nobodys) == set()
    with reading(narrowed(engine, EVERYTHING)).connect() as whole:
        assert names(whole) == {"ours", "theirs"}


TRUNCATED = dataset("tt", lifecycleStateChange={"lifecycleStateChange": "TRUNCATE"})
OTHER_NAME = dataset("tt", "spark://old", symlinks=symlink("tt", type_="LOCATION"))
HIDDEN = {
    "an input that the key does not see": ([dataset("src", "s3://other")], "loader"),
    "the table itself by a hidden name": ([OTHER_NAME], None),
}


@pytest.mark.parametrize(("reads", "writer"), HIDDEN.values(), ids=HIDDEN)
def test_latest_write_is_the_same_for_every_key(
    engine: Engine, reads: list[Json], writer: str | None
) -> None:
    batch = {"jobType": {"processingType": "BATCH", "integration": "SPARK"}}
    store(engine, [event("COMPLETE", 1, "loader", 0, reads, [TRUNCATED], job_facets=batch)], NOON)

    def latest_writer(of: Engine) -> str | None:
        with reading(of).connect() as connection:
            items = datasets_page(connection, ALL, NOON_MICROS, 10, None)["items"]
        (write,) = [one["latestWrite"] for one in items if one["name"] == "tt"]
        return str(write["job"]["name"]) if write else None

    assert latest_writer(engine) == writer
    assert latest_writer(narrowed(engine, access("tests", "hive://lake"))) == writer


def test_hidden_name_is_removed_from_texts_and_similar_words_stay() -> None:
    names = HiddenNames({"balance", "secret.job"}, {"bank.balance", "job"})

    said = names.out_of("bank.balance waits for balance of secret.job; balances and job do not")
    assert said == "bank.balance waits for (hidden) of (hidden); balances and job do not"
