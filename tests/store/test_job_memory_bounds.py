"""The bounds of the memory of jobs."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from fixtures.sqlite_first import database_url  # noqa: F401 - PostgreSQL is slow here
from store.test_tables_behind_views import through
from strandline.core.access.granted import Access
from strandline.runtime.job_memory import LINK_BYTES, JobMemory
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage import graph_log, known_jobs
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.marquez.annotations import Author, Note, annotate
from strandline.store.schema.annotation_tables import DELETED
from strandline.store.schema.graph_tables import graph_news
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.builders import Json
from worlds.scenarios.bank import FACET, bank
from worlds.scenarios.kept_graph import MOMENT, PLENTY, asked, different, follow, kept, nodes
from worlds.scenarios.plain import dataset, parent, run
from worlds.scenarios.taking import fill, ids, view

DAY = 86_400_000_000


def writer(engine: Engine, records: Sequence[Record]) -> Caches:
    """Return the caches of a writer that has stored these and needs no lock for that any more."""
    caches = Caches()
    with engine.begin() as connection:
        take(connection, records, caches)
    caches.commit()
    return caches


@pytest.mark.postgres
def test_transaction_committed_out_of_order_is_not_missed(
    postgres_engine: Engine, memory: JobMemory
) -> None:
    follow(postgres_engine)
    before = [
        run("COMPLETE", 1, "load", ["a"], ["b"]),
        run("COMPLETE", 1, "clean", ["d"], ["e", "c"]),
    ]
    one, other = (writer(postgres_engine, before) for _ in range(2))
    assert different(postgres_engine, memory) == ""

    with postgres_engine.begin() as slow:
        take(slow, [run("COMPLETE", 2, "load", ["a"], ["c"], run_id="2")], one)
        with postgres_engine.begin() as fast:
            take(fast, [run("COMPLETE", 3, "clean", ["d"], ["e"], run_id="2")], other)
        assert different(postgres_engine, memory) == ""

    assert different(postgres_engine, memory) == ""
    assert "dataset:db:c" in ids(asked(postgres_engine, memory, "a"))


@pytest.mark.postgres
def test_following_by_the_greatest_number_misses_it(
    postgres_engine: Engine, memory: JobMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the transaction that commits late is missed."""
    greatest = graph_log._LOOK["postgresql"].replace("pg_snapshot_xmin", "pg_snapshot_xmax")
    monkeypatch.setitem(graph_log._LOOK, "postgresql", greatest)
    graph_log._statement.cache_clear()
    with pytest.raises(AssertionError):
        test_transaction_committed_out_of_order_is_not_missed(postgres_engine, memory)
    graph_log._statement.cache_clear()


def test_job_read_again_comes_from_memory_until_it_changes(
    followed: Engine, memory: JobMemory
) -> None:
    fill(
        followed,
        [run("COMPLETE", 1, "load", ["a"], ["b"]), run("COMPLETE", 1, "sum", ["b"], ["c"])],
    )

    assert kept(followed, memory, "a") == (0, 2)
    assert kept(followed, memory, "a") == (2, 0)
    fill(followed, [run("COMPLETE", 2, "load", ["a"], ["b"], run_id="2")])
    assert kept(followed, memory, "a") == (1, 1)


def test_job_read_before_a_change_is_not_kept(
    followed: Engine, memory: JobMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event arrives while one question reads; another sees it before the first keeps the job."""
    fill(
        followed,
        [run("COMPLETE", 1, "load", ["a"], ["b"]), run("COMPLETE", 1, "odd", ["x"], ["y"])],
    )
    asked(followed, memory, "x")
    load = known_jobs.load_jobs

    def overtaken(*arguments: Any) -> Any:
        jobs = load(*arguments)
        monkeypatch.setattr(known_jobs, "load_jobs", load)
        fill(followed, [run("COMPLETE", 2, "load", ["a"], ["b", "c"])])
        asked(followed, memory, "x")
        return jobs

    monkeypatch.setattr(known_jobs, "load_jobs", overtaken)
    asked(followed, memory, "a")

    assert "dataset:db:c" in ids(asked(followed, memory, "a"))
    assert different(followed, memory) == ""


def test_silence_undoes_a_write_without_a_change(followed: Engine, memory: JobMemory) -> None:
    stated = FACET | {"format": "iceberg", "snapshotId": "1"}
    made = dataset("b") | {"outputFacets": {"strandline_snapshot": stated}}
    fill(
        followed,
        [
            run("COMPLETE", 1, "load", ["a"], [made]),
            run("START", 2, "load", ["other"], ["b"], run_id="2"),
        ],
    )
    soon = view("2026-11-20T12:00:10Z").at

    assert [different(followed, memory, at) for at in (soon, soon + 2 * DAY)] == ["", ""]
    assert "dataset:db:other" in ids(asked(followed, memory, "b", soon))
    assert "dataset:db:other" not in ids(asked(followed, memory, "b", soon + 2 * DAY))


def test_nested_command_is_hidden_where_one_of_its_jobs_is_in_memory(
    followed: Engine, memory: JobMemory
) -> None:
    """The listener reports the inner write of a CREATE TABLE AS as a job of its own."""
    of_app = parent("app")
    spark = {"jobType": FACET | {"processingType": "BATCH", "integration": "SPARK"}}
    outer, inner = "app.create_table_as_select.db_t", "app.append_data.lake_db_t"
    fill(
        followed,
        [
            run("START", 1, outer, ["a"], ["t"], of_run=of_app, of_job=spark),
            run("START", 2, inner, ["a", "z"], ["t"], of_run=of_app, of_job=spark),
            run("COMPLETE", 3, inner, of_run=of_app, of_job=spark),
        ],
    )
    asked(followed, memory, "z")
    fill(followed, [run("COMPLETE", 4, outer, of_run=of_app, of_job=spark)])

    assert "dataset:db:z" not in ids(asked(followed, memory, "t"))
    assert different(followed, memory) == ""


def test_deleted_job_leaves_memory(followed: Engine, memory: JobMemory) -> None:
    fill(followed, [run("COMPLETE", 1, "load", ["a"], ["b"])])
    asked(followed, memory, "a")
    with followed.begin() as connection:
        job = node_called(connection, "job:ns:load")
        annotate(connection, Note(job.id, str(job), DELETED), Author(2**62))

    assert ids(asked(followed, memory, "a")) == ["dataset:db:a"]


def test_memory_stays_within_its_bound(followed: Engine) -> None:
    memory, sizes = JobMemory(30_000), []
    fill(followed, bank())
    for _ in range(2):
        with reading(followed).connect() as connection:
            for node in nodes(connection):
                shared = memory.view(connection, View(MOMENT))
                lineage_of(connection, Question(node, View(MOMENT)), shared)
                sizes.append(memory.size)

    assert 0 < max(sizes) <= 30_000
    assert different(followed, memory) == ""


def test_memory_counts_what_views_show_once_for_equal_runs(
    followed: Engine, memory: JobMemory
) -> None:
    behind: list[str | Json] = ["v", *(through(f"t{number}", "v") for number in range(30))]
    plain: list[str | Json] = ["w", *(f"u{number}" for number in range(30))]
    fill(
        followed,
        [
            run("COMPLETE", number, job, read, [made], run_id=str(number))
            for number in range(3)
            for job, read, made in (("load", behind, "a"), ("sum", plain, "b"))
        ],
    )

    asked(followed, memory, "b")
    of_plain = memory.size
    asked(followed, memory, "a")
    assert of_plain > 0
    assert memory.size == 2 * of_plain + 30 * LINK_BYTES


def test_reader_that_missed_pruned_changes_starts_empty(
    followed: Engine, memory: JobMemory
) -> None:
    fill(followed, [run("COMPLETE", 1, "load", ["a"], ["b"])])
    assert different(followed, memory) == ""
    fill(followed, [run("COMPLETE", 2, "load", ["a"], ["c"], run_id="2")])
    with followed.begin() as connection:
        connection.execute(graph_news.update().values(at=0))
        graph_log.prune(connection)
        assert connection.scalar(select(func.count()).select_from(graph_news)) == 0

    assert different(followed, memory) == ""
    assert "dataset:db:c" in ids(asked(followed, memory, "a"))


def test_memory_is_used_only_where_changes_are_recorded(engine: Engine) -> None:
    fill(engine, bank())
    with reading(engine).connect() as connection:
        assert JobMemory(PLENTY).view(connection, View(MOMENT)) is None
        assert connection.scalar(select(func.count()).select_from(graph_news)) == 0

    follow(engine)
    with reading(engine).connect() as connection:
        assert JobMemory(0).view(connection, View(MOMENT)) is None
        assert JobMemory(PLENTY).view(connection, View(MOMENT)) is not None


def test_past_running_latest_and_narrowed_questions_go_to_the_database(
    followed: Engine, memory: JobMemory
) -> None:
    fill(followed, bank())
    some = Access("key", frozenset({"read"}), ("file",))
    with (
        reading(followed).connect() as connection,
        reading(narrowed(followed, some)).connect() as of_key,
    ):
        views = [View(MOMENT, live=True), View(MOMENT, past=True), View(MOMENT, newest=True)]

        assert [memory.view(connection, one) for one in views] == [None] * 3
        assert memory.view(of_key, View(MOMENT)) is None


def test_reader_older_than_memory_does_not_use_it(sqlite_engine: Engine, memory: JobMemory) -> None:
    """Its transaction began before a change that another question has applied."""
    follow(sqlite_engine)
    fill(sqlite_engine, [run("COMPLETE", 1, "load", ["a"], ["b"])])
    asked(sqlite_engine, memory, "a")
    with reading(sqlite_engine).connect() as old:
        nodes(old)
        fill(sqlite_engine, [run("COMPLETE", 2, "load", ["a"], ["c"])])
        asked(sqlite_engine, memory, "a")

        assert memory.view(old, View(MOMENT)) is None
