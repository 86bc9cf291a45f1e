"""The reports of a whole store: on random worlds equal to slow and obvious answers, on a small one as anybody can count."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.analysis.closure import Limits
from strandline.analysis.delays import COMMITS, USES, delays
from strandline.analysis.graph import read_graph
from strandline.analysis.removal import removal
from strandline.analysis.report import REPORTS, WITHOUT, Analysis, AnalysisRequest, analyse, rows_of
from strandline.cli import main
from strandline.core.openlineage.names import id_of
from strandline.store.ingest.take import Record
from strandline.store.lineage.column_lineage import DEPENDENCIES, meet
from strandline.store.sql.engine import make_engine, migrate
from worlds.scenarios.bank import FACET, bank
from worlds.scenarios.plain import columns, run
from worlds.scenarios.random_graph import Job, random_jobs, reached, ways_on
from worlds.scenarios.taking import fill, view

pytestmark = pytest.mark.spark
NOW = view("2026-11-20T13:00:00Z")
LIMITS = Limits(partitions=2)
Json = dict[str, Any]
Node = tuple[str, str]


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def analysed(spark: Any, engine: Engine, folder: Path, **asked: Any) -> Analysis:
    before = asked.pop("stale_before", 0)
    return analyse(spark, url_of(engine), AnalysisRequest(NOW, LIMITS, before, **asked), str(folder))


def report(found: Analysis, name: str) -> list[Json]:
    return list(rows_of(found, REPORTS.get(name, WITHOUT), 100)["rows"])


def short(rows: Iterable[Json], *keys: str) -> list[tuple[Any, ...]]:
    """Some columns of rows, datasets and jobs by their last names."""
    return [
        tuple(str(row[key]).rpartition(":")[2] if isinstance(row[key], str) else row[key] for key in keys)
        for row in rows
    ]


def dataset_names(found: Analysis) -> dict[int, str]:
    return {row.id: row.name for row in found.datasets.select("id", "name").collect()}


# ---- random worlds ---------------------------------------------------------------------------------------------------


def worlds() -> list[Job]:
    """Five worlds of the same jobs' names and datasets, told apart by a prefix; circles included."""
    found = []
    for seed in range(5):
        for job in random_jobs(random.Random(seed), 9, 11):
            found.append(_renamed(job, f"w{seed}."))
    return found


def _renamed(job: Job, prefix: str) -> Job:
    stated = {
        prefix + sink: {
            column: [(prefix + source, of, kind) for source, of, kind in origins] for column, origins in columns.items()
        }
        for sink, columns in job.stated.items()
    }
    reads, writes = (tuple(prefix + name for name in names) for names in (job.reads, job.writes))
    return Job(prefix + job.name, job.second, reads, writes, stated)


def test_random_worlds_have_the_closures_that_a_search_finds(lake: Any, engine: Engine, tmp_path: Path) -> None:
    jobs = worlds()
    fill(engine, [job.event() for job in jobs])

    found = analysed(lake, engine, tmp_path, reports=("impact", "columns", "unused", "jobs"))

    triples = {triple for job in jobs for triple in job.triples()}
    names = dataset_names(found)
    onwards = ways_on(triples)
    pairs = {(names[row.start], names[row.node], row.distance) for row in found.tables["closure"].collect()}
    tables = {name for job in jobs for name in (*job.reads, *job.writes)}
    assert set(names.values()) == tables
    assert pairs == {
        (start, node, distance)
        for start in tables
        for node, distance in reached(onwards, [start]).items()
        if node != start
    }
    assert _column_pairs(found, names) == _searched(jobs)
    assert found.closures["columns"]["complete"] is True


def _column_pairs(found: Analysis, names: dict[int, str]) -> dict[tuple[Node, Node], tuple[int, str]]:
    edges = found.tables["column_edges"].collect()
    nodes = {id_: (names[id_], "") for id_ in names}
    nodes |= {row.node: (names[row.dataset], row.column) for row in found.tables["columns"].collect()}
    assert {row.source_node for row in edges} <= nodes.keys()
    return {
        (nodes[row.start], nodes[row.node]): (row.distance, row.dependency)
        for row in found.tables["column_closure"].collect()
        if nodes[row.start][1]
    }


def _searched(jobs: list[Job]) -> dict[tuple[Node, Node], tuple[int, str]]:
    """From every column, step by step; and by edges of at least each strength, the strongest last."""
    edges = {(source, target, how) for job in jobs for source, _, target, how in job.column_edges()}
    starts = {end for source, target, _ in edges for end in (source, target) if end[1]}
    found: dict[tuple[Node, Node], tuple[int, str]] = {}
    for start in starts:
        distances = reached(_onwards(edges, DEPENDENCIES), [start])
        for least in range(len(DEPENDENCIES)):
            for node in reached(_onwards(edges, DEPENDENCIES[least:]), [start]):
                found[start, node] = (distances[node], DEPENDENCIES[least])
    return {ends: how for ends, how in found.items() if ends[0] != ends[1]}


def _onwards(edges: set[tuple[Node, Node, str]], admitted: tuple[str, ...]) -> dict[Node, set[Node]]:
    nodes = {end for source, target, _ in edges for end in (source, target)}
    return {
        node: {
            target
            for source, target, how in edges
            if how in admitted and source[0] == node[0] and meet(source[1], node[1])
        }
        for node in nodes
    }


# ---- a small world ---------------------------------------------------------------------------------------------------


def typed(name: str, *fields: str, namespace: str = "db") -> Json:
    """A dataset with a schema; all columns are of one type."""
    schema = FACET | {"fields": [{"name": field, "type": "int"} for field in fields]}
    return {"namespace": namespace, "name": name, "facets": {"schema": schema}}


def shop() -> list[Record]:
    """raw -> orders -> totals -> (report); lost and mart stand beside; `dead` was written by a run that is forgotten."""
    raw = typed("raw", "id", "price", "note")
    stated = columns("orders", id=("raw", "id"), price=("raw", "price"))
    orders = stated | {"facets": stated["facets"] | typed("orders", "id", "price")["facets"]}
    totals = columns("totals", sum=("orders", "price"))
    three = ("a", "b", "c")
    return [
        run("COMPLETE", 1, "ingest", [], [raw]),
        run("COMPLETE", 2, "clean", [raw], [orders]),
        run("COMPLETE", 3, "sum", ["orders"], [totals]),
        run("COMPLETE", 4, "second", ["orders"], [columns("totals", sum=("orders", "price"))]),
        run("COMPLETE", 5, "publish", ["totals"], []),
        run("COMPLETE", 6, "archive", ["lake"], ["mart"]),
        run("COMPLETE", 7, "copy", [typed("/x/events", *three, namespace="s3://b")], [typed("old.events", *three)]),
        run("COMPLETE", 8, "land", [], [typed("x/events/", *three, namespace="s3a://b"), typed("new.events", *three)]),
        run("COMPLETE", 9, "moved", ["away"], ["gone"]),
        *(run("COMPLETE", 10 + n, "moved", ["here"], ["there"], run_id=str(2 + n)) for n in range(11)),
        run("COMPLETE", 30, "loop", ["ring1", "raw"], ["ring2"]),
        run("COMPLETE", 31, "back", ["ring2"], ["ring1"]),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all tests of this module."""
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def shop_engine(home: Path) -> Iterator[Engine]:
    """The shop on SQLite."""
    engine = make_engine(f"sqlite:///{home}/shop.db")
    migrate(engine)
    fill(engine, shop())
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def found(lake: Any, shop_engine: Engine, home: Path) -> Analysis:
    """All reports of the shop."""
    stale = int(NOW.at) - 3_590_000_000  # ten seconds after noon
    return analysed(lake, shop_engine, home, stale_before=stale)


def test_every_report_of_a_small_world(found: Analysis) -> None:
    impact = short(report(found, "impact"), "dataset", "downstream", "readers", "writers")
    assert impact[0] == ("raw", 4, 2, 1)
    assert ("orders", 1, 2, 1) in impact
    counts = short(
        report(found, "columns"), "dataset", "column", "downstream_columns", "downstream_datasets", "by_value"
    )
    assert counts[0] == ("raw", "price", 2, 4, 2)
    assert sorted(counts[1:]) == [("orders", "price", 1, 1, 1), ("raw", "id", 1, 3, 1)]
    assert short(report(found, "unused"), "dataset", "column") == [("orders", "id")]  # a loop reads raw whole
    assert sorted(short(report(found, "orphans"), "dataset")) == [("away",), ("gone",)]
    unread = ["mart", "new.events", "old.events", "there", "x/events/"]
    assert sorted(short(report(found, "unread"), "dataset")) == [(name,) for name in unread]
    assert short(report(found, "stale"), "dataset", "downstream") == [("raw", 4), ("orders", 1), ("totals", 0)]
    assert short(report(found, "jobs"), "job", "last_writer_of", "datasets_below")[0] == ("ingest", 1, 5)


def test_names_that_are_probably_one_come_with_their_evidence(found: Analysis) -> None:
    rows = {
        frozenset((row["dataset"], row["other"])): (row["rule"], row["evidence"]) for row in report(found, "aliases")
    }

    fields = "events: a int, b int, c int"
    one, other = "dataset:s3://b:/x/events", "dataset:s3a://b:x/events/"
    old, new = "dataset:db:old.events", "dataset:db:new.events"
    assert rows == {
        frozenset((one, other)): ("same path", "s3//b/x/events"),
        frozenset((old, new)): ("same schema and last part", fields),
        frozenset((old, other)): ("same schema and last part", fields),
        frozenset((new, one)): ("same schema and last part", fields),
        frozenset((new, other)): ("same schema and last part", fields),
    }  # old and one are not: the first is a copy of the second


@pytest.mark.parametrize(
    ("jobs", "effects"),
    [
        (["sum", "archive", "publish"], {"totals": "loses a writer", "mart": "loses its last writer"}),
        (
            ["ingest", "second"],
            {"raw": "loses its last writer"} | dict.fromkeys(("orders", "totals", "ring1", "ring2"), "stands still"),
        ),
    ],
)
def test_what_the_removal_of_jobs_concerns(
    lake: Any, found: Analysis, home: Path, jobs: list[str], effects: dict[str, str]
) -> None:
    lake.sparkContext.setCheckpointDir(str(home / "checkpoints"))
    without = [id_of("job", "ns", name) for name in jobs]

    concerned = removal(found.tables["steps"], without, LIMITS)

    names = dataset_names(found)
    assert {names[row.id]: row.effect for row in concerned.collect()} == effects


def test_snapshots_are_late_by_all_that_was_waited_on_the_way(lake: Any, tmp_path: Path) -> None:
    """A random world of commits, each made from some before it; clocks may be wrong."""
    lake.sparkContext.setCheckpointDir(str(tmp_path))
    chance = random.Random(3)
    committed = {number: 1_000_000 * (100 * number + chance.randint(-400, 400)) for number in range(60)}
    read = {number: sorted(chance.sample(range(number), min(number, chance.randrange(4)))) for number in committed}
    uses = [(n, 0, 1, n % 7, str(n)) for n in committed]
    uses += [(n, 0, 0, one % 7, str(one)) for n, inputs in read.items() for one in inputs]
    commits = [(n % 7, str(n), at) for n, at in committed.items()]

    found = delays(lake.createDataFrame(uses, USES), lake.createDataFrame(commits, COMMITS)).collect()

    assert {int(row.snapshot): (row.seconds_after_inputs, row.seconds_after_birth) for row in found} == waited(
        committed, read
    )


def waited(committed: dict[int, int], read: dict[int, list[int]]) -> dict[int, tuple[float, float]]:
    """By hand: of each snapshot the newest input of another table, and of that again."""
    newest: dict[int, int] = {}
    for number, inputs in read.items():
        others = [one for one in inputs if one % 7 != number % 7]
        if others:
            newest[number] = max(others, key=lambda one: (committed[one], one % 7, str(one)))
    found = {}
    for number, ready in newest.items():
        birth = ready
        while birth in newest:
            birth = newest[birth]
        found[number] = tuple(max(0, committed[number] - committed[one]) / 1e6 for one in (ready, birth))
    return found  # type: ignore[return-value]  # two each


def test_the_delays_of_a_store_are_those_of_its_snapshots(lake: Any, engine: Engine, tmp_path: Path) -> None:
    """In the bank each barrier is committed at one moment by all, and the report's clock is behind: nothing waits."""
    fill(engine, bank(4))

    found = analysed(lake, engine, tmp_path, reports=("delays",))

    rows = short(report(found, "delays"), "dataset", "snapshots", "seconds_after_birth_max")
    tables = {f"/lake/bank/{name}": 4 for name in ("credits", "debits", "balance")} | {"/lake/bank/report": 1}
    assert sorted(rows) == sorted((name, count, 0.0) for name, count in tables.items())


def test_reports_about_datasets_read_no_columns(lake: Any, shop_engine: Engine, tmp_path: Path) -> None:
    lake.sparkContext.setCheckpointDir(str(tmp_path / "checkpoints"))

    whole, plain = (
        read_graph(lake, url_of(shop_engine), NOW, f"{tmp_path}/{columns}", 2, columns=columns)
        for columns in (True, False)
    )

    assert min(frame.count() for frame in (whole.steps, whole.columns, whole.column_edges, whole.nodes)) > 0
    assert [frame.count() for frame in (plain.columns, plain.column_edges, plain.nodes)] == [0, 0, 0]
    assert sorted(map(str, plain.steps.collect())) == sorted(map(str, whole.steps.collect()))


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_tables_and_shows_the_first_rows(
    lake: Any, shop_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": url_of(shop_engine)}
    target = str(tmp_path / "tables")

    shown = main(["analyse", "--to", target, "--report", "impact", "--top", "1"], environ)
    out = capsys.readouterr().out
    cut = main(["analyse", "--report", "impact", "--depth", "1", "--json"], environ)
    answer = json.loads(capsys.readouterr().out)

    assert (shown, cut) == (0, 0)
    assert out.splitlines()[1].split() == ["DATASET", "DOWNSTREAM", "UPSTREAM", "READERS", "WRITERS"]
    assert out.splitlines()[2].split() == ["raw", "4", "0", "2", "1"]
    assert f"tables in {target}: analysis, closure, datasets, steps" in out  # `analysis`: of when they are
    assert "the closure of" not in out
    assert (
        lake.read.parquet(f"{target}/closure").count()
        == lake.read.parquet(f"{target}/datasets").selectExpr("sum(downstream)").first()[0]
    )
    assert answer["closures"]["datasets"] == {"complete": False, "truncatedBy": "depth", "depth": 1}
    assert answer["reports"]["impact"]["rows"][0]["downstream"] == 2
    assert answer["reports"]["impact"]["rows"][0]["dataset"] == "dataset:db:raw"
    assert answer["reports"]["impact"]["labels"]["dataset:db:raw"] == "raw"
    assert main(["analyse", "--without-job", "nobody"], environ) == 1
    assert "unknown job" in capsys.readouterr().err
