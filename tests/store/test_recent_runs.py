"""Recent lineage: the union over a job's recent runs, without combining runs."""

import random
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from strandline.cli.lineage_text import lineage_text
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.store.ingest.take import Record
from strandline.store.lineage import relations
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.empty_writes import created_nothing
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.recent_runs import Sighting, sightings, with_relations
from strandline.store.lineage.run_state import View, run_owners
from strandline.store.lineage.sightings import as_of
from strandline.store.lineage.table_graph import Question
from strandline.store.schema.relation_tables import relations as run_relations
from strandline.store.schema.run_tables import runs
from strandline.store.sql.shared_settings import agree
from worlds.builders import rows
from worlds.scenarios.bank import FACET, time
from worlds.scenarios.plain import columns, creates, parent, run
from worlds.scenarios.taking import NOW, arrows, fill, ids, lineage, reader, view

STREAMING = {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
QUERY = "0f2c6d0e-0000-4000-8000-00000000000a"
UP, DOWN = Direction.UPSTREAM, Direction.DOWNSTREAM


@pytest.mark.parametrize("past", [False, True])
def test_recent_lineage_covers_recent_runs_and_latest_only_the_latest(
    engine: Engine, past: bool
) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "j", ["a", "b"], ["t"]),
            run("COMPLETE", 2, "j", ["b"], ["t"], run_id="2"),
        ],
    )

    known, newest = (
        view("2026-11-20T13:00:00Z", past=past, newest=alone) for alone in (False, True)
    )

    assert ids(lineage(engine, "t", known, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "dataset:db:b",
        "job:ns:j",
    ]
    assert ids(lineage(engine, "t", newest, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:b",
        "job:ns:j",
    ]
    assert seen(lineage(engine, "t", known, direction=UP)) == {
        "job:ns:j -> dataset:db:t": ("12:00:02", 2, 2, True),
        "dataset:db:a -> job:ns:j": ("12:00:01", 1, 2, False),
        "dataset:db:b -> job:ns:j": ("12:00:02", 2, 2, True),
    }


def seen(answer: dict[str, Any]) -> dict[str, tuple[str, int, int, bool]]:
    """Return each edge's last time, its number of runs of how many, and if the newest has it."""
    times = [
        (edge["lastSeen"][11:19], edge["runs"], edge["ofRuns"], edge["inLatest"])
        for edge in answer["edges"]
    ]
    return dict(zip(arrows(answer), times, strict=True))


@pytest.mark.parametrize("past", [False, True])
def test_two_inserts_under_one_job_name_are_both_recent(engine: Engine, past: bool) -> None:
    app = parent("app")
    statements = [
        ("COMPLETE", 1, "a", "1"),
        ("COMPLETE", 2, "b", "2"),
        ("COMPLETE", 3, "daily", "3"),
    ]
    fill(
        engine,
        [
            run(kind, at, "app.t", [one], ["t"], run_id=number, of_run=app)
            for kind, at, one, number in statements
        ],
    )

    answer = lineage(engine, "t", view("2026-11-20T13:00:00Z", past=past, runs=0), direction=UP)

    assert ids(answer)[:4] == ["dataset:db:t", "dataset:db:a", "dataset:db:b", "dataset:db:daily"]
    assert {edge["ofRuns"] for edge in answer["edges"]} == {3}


@pytest.mark.parametrize("past", [False, True])
def test_edge_outside_the_recent_runs_is_history(engine: Engine, past: bool) -> None:
    """All runs below the latest application count, and three before them."""
    newest = [
        run("COMPLETE", at, "j", [f"n{at}"], ["t"], run_id=str(at), of_run=parent("app"))
        for at in (10, 11)
    ]
    fill(
        engine,
        [
            *(run("COMPLETE", at, "j", [f"b{at}"], ["t"], run_id=str(at)) for at in range(5)),
            *newest,
        ],
    )

    answer = lineage(engine, "t", view("2026-11-20T13:00:00Z", past=past, runs=3), direction=UP)

    sources = [
        "dataset:db:b2",
        "dataset:db:b3",
        "dataset:db:b4",
        "dataset:db:n10",
        "dataset:db:n11",
    ]
    assert ids(answer) == ["dataset:db:t", *sources, "job:ns:j"]
    assert ids(lineage(engine, "b1", view("2026-11-20T13:00:00Z", past=past, runs=3))) == [
        "dataset:db:b1"
    ]
    assert "dataset:db:b0" in ids(
        lineage(engine, "t", view("2026-11-20T13:00:00Z", past=past), direction=UP)
    )


@pytest.mark.parametrize("past", [False, True])
def test_own_run_of_the_latest_application_is_recent_however_old(
    engine: Engine, past: bool
) -> None:
    others = [run("COMPLETE", n, "j", ["b"], ["t"], run_id=str(n)) for n in range(2, 22)]
    application = run("COMPLETE", 1, "j", ["a"], ["t"])
    below = run("COMPLETE", 30, "j", ["c"], ["t"], run_id="30", of_run=parent("j"))
    fill(engine, [application, *others, below])

    now = view("2026-11-20T13:00:00Z", past=past)
    assert seen(lineage(engine, "t", now, direction=UP)) == {
        "job:ns:j -> dataset:db:t": ("12:00:30", 12, 12, True),
        "dataset:db:a -> job:ns:j": ("12:00:01", 1, 12, False),
        "dataset:db:b -> job:ns:j": ("12:00:21", 10, 12, False),
        "dataset:db:c -> job:ns:j": ("12:00:30", 1, 12, True),
    }


def test_number_of_recent_runs_is_a_setting_of_the_store(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", at, "j", [f"b{at}"], ["t"], run_id=str(at)) for at in range(4)])
    with engine.begin() as connection:
        agree(connection, "recent_runs", "1")

    assert ids(lineage(engine, "t", direction=UP)) == [
        "dataset:db:t",
        "dataset:db:b2",
        "dataset:db:b3",
        "job:ns:j",
    ]


def test_column_edges_count_the_runs_that_had_them(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "j", ["a"], [columns("t", x=("a", "old"))])])
    fill(
        engine,
        [
            run("COMPLETE", at, "j", ["a"], [columns("t", x=("a", "x"))], run_id=str(at))
            for at in (2, 3)
        ],
    )

    with reader(engine) as connection:
        question = Question(node_called(connection, "t"), NOW, UP)
        answer = column_lineage_of(connection, question, "x")

    assert seen(answer) == {
        "column:db:a:old -> column:db:t:x": ("12:00:01", 1, 3, False),
        "column:db:a:x -> column:db:t:x": ("12:00:03", 2, 3, True),
    }


def test_run_without_inputs_gives_its_sink_no_sources(engine: Engine) -> None:
    """Inputs and columns of another run are not its sources."""
    fill(
        engine,
        [run("COMPLETE", 1, "j", ["a"], ["t"]), run("COMPLETE", 2, "j", [], ["u"], run_id="2")],
    )

    assert ids(lineage(engine, "u", direction=UP)) == ["dataset:db:u", "job:ns:j"]
    assert ids(lineage(engine, "a", direction=DOWN)) == ["dataset:db:a", "dataset:db:t", "job:ns:j"]
    with reader(engine) as connection:
        assert (
            column_lineage_of(connection, Question(node_called(connection, "u"), NOW, UP))["edges"]
            == []
        )


@pytest.mark.parametrize("live", [False, True])
def test_edges_of_two_statements_are_not_combined(engine: Engine, live: bool) -> None:
    """One reports no output, the other no input; the two queries share a name."""
    of_app: dict[str, Any] = {"of_run": parent("app"), "of_job": STREAMING}
    reads, writes = (
        run("START", 1, "app.q", ["a"], **of_app),
        run("START", 2, "app.q", [], ["t"], run_id="2", **of_app),
    )
    fill(engine, [run("START", 0, "app"), reads, writes])

    answer = lineage(engine, "t", view(time(10), live=live), direction=UP)

    assert arrows(answer) == ["job:ns:app -> dataset:db:t"]
    assert arrows(lineage(engine, "a", view(time(10), live=live), direction=DOWN)) == [
        "dataset:db:a -> job:ns:app"
    ]


@pytest.mark.parametrize(
    ("stories", "answers"), [(5, 6), pytest.param(40, 50, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("alone", [False, True])
def test_recent_lineage_matches_brute_force(
    engine: Engine, alone: bool, stories: int, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Current answers use the last edges of jobs, past ones the runs of that moment."""
    chance = random.Random(7)
    for story in range(stories):
        fill(engine, [_any_event(chance, f"job{story}", turn) for turn in range(12)])
    now = [
        (name, view("2026-11-20T13:00:00Z", newest=alone, runs=chance.randrange(3)))
        for (name,) in rows(engine, "SELECT name FROM datasets")
    ]
    then = [
        (name, replace(seen, at=view(time(chance.randrange(12))).at, past=True))
        for name, seen in now
    ]
    found = (
        [lineage(engine, name, seen) for name, seen in now],
        [_at(engine, name, seen) for name, seen in then],
    )

    monkeypatch.setattr(relations, "past_sightings", all_touches)

    assert found[0] == [lineage(engine, name, replace(seen, past=True)) for name, seen in now]
    assert found[1] == [_at(engine, name, seen) for name, seen in then]
    assert sum(answer is not None and bool(answer["edges"]) for answer in found[1]) > answers


def _at(engine: Engine, name: str, seen: View) -> dict[str, Any] | None:
    """The answer; None where nothing of the name was known by then."""
    with suppress(NotFoundError):
        return lineage(engine, name, seen)
    return None


def all_touches(
    connection: Connection, names: Collection[int], jobs: Collection[int], _: int, moment: int
) -> list[Sighting]:
    """Return what all runs of these names had touched by a moment."""
    query = (
        sightings(past=True)
        .select_from(with_relations(runs.join(run_owners, run_owners.c.run_id == runs.c.id)))
        .where(
            runs.c.job_id.in_(names),
            run_owners.c.job_id.in_(jobs),
            run_relations.c.first_at <= moment,
            ~created_nothing(past=True),
        )
    )
    rows = connection.execute(query, {"moment": moment})
    return [as_of(Sighting._make(row), moment) for row in rows]


def _any_event(chance: random.Random, job: str, seconds: int) -> Record:
    kind = chance.choice(["START", "RUNNING", "COMPLETE", "COMPLETE", "FAIL"])
    reads, writes = (
        chance.sample([f"{job}.{table}" for table in "abc"], chance.randrange(3)) for _ in range(2)
    )
    made = [creates(one) if chance.random() < 0.5 else one for one in writes]
    number = chance.randrange(6)
    above = parent(f"{job}.app", str(number % 3)) if number % 2 else {}
    if number > 3:  # a micro-batch of one of the application's queries
        query = f"{QUERY[:-4]}{int(job[3:]):03}{number % 2}"
        above |= {
            "spark_jobDetails": FACET
            | {"jobDescription": f"{job}.q<br/>id = {query}<br/>batch = {number}"}
        }
    streaming = STREAMING if number > 3 else None
    return run(kind, seconds, job, reads, made, run_id=str(number), of_run=above, of_job=streaming)


def test_another_querys_micro_batches_do_not_count_as_recent_runs(engine: Engine) -> None:
    """They have the job's name and are newer than its own runs."""
    described = {
        "spark_jobDetails": FACET | {"jobDescription": f"q<br/>id = {QUERY}<br/>batch = 0"}
    }
    batches = [
        run(
            "COMPLETE",
            10 + at,
            "j",
            ["a"],
            ["t"],
            run_id=str(at),
            of_run=described,
            of_job=STREAMING,
        )
        for at in range(12)
    ]
    fill(engine, [run("COMPLETE", 1, "j", [], ["t"], run_id="own"), *batches])
    fill(engine, [run("COMPLETE", 2, "j", ["c"], ["u"], run_id="new")])

    known = seen(lineage(engine, "job:ns:j"))

    assert known["job:ns:j -> dataset:db:t"][1:] == (1, 2, False)
    assert known["job:ns:j -> dataset:db:u"][1:] == (1, 2, True)


@pytest.mark.parametrize("past", [False, True])
def test_latest_is_empty_where_the_latest_run_reported_nothing(engine: Engine, past: bool) -> None:
    fill(
        engine,
        [run("COMPLETE", 1, "j", ["a"], ["t"]), run("COMPLETE", 2, "j", run_id="2")],
    )
    latest = view("2026-11-20T13:00:00Z", past=past, newest=True)

    assert arrows(lineage(engine, "t", latest)) == []
    assert arrows(lineage(engine, "t")) == ["job:ns:j -> dataset:db:t", "dataset:db:a -> job:ns:j"]


def test_latest_is_one_run_and_not_the_last_to_read_and_the_last_to_write(engine: Engine) -> None:
    fill(
        engine,
        [run("COMPLETE", 1, "j", ["a"], ["t"]), run("COMPLETE", 2, "j", ["b"], run_id="2")],
    )

    answer = lineage(engine, "job:ns:j", view("2026-11-20T13:00:00Z", newest=True))

    assert arrows(answer) == ["dataset:db:b -> job:ns:j"]


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("end", ["FAIL", "LOST"])
def test_latest_run_that_failed_or_was_lost_shows_what_it_read_and_no_earlier_write(
    engine: Engine, end: str, past: bool
) -> None:
    """The answer names the run beside what another job wrote into the same table."""
    fill(engine, [run("COMPLETE", 0, "other", ["x"], ["t"])])
    fill(engine, [run("COMPLETE", 1, "load", ["a"], [creates("t")])])
    fill(engine, [run("START", 2, "load", ["b"], [creates("t")], run_id="2")])
    if end == "FAIL":
        fill(engine, [run("FAIL", 3, "load", run_id="2")])
    latest = view("2026-11-28T13:00:00Z", past=past, newest=True)

    answer = lineage(engine, "t", latest, direction=UP)

    assert arrows(answer) == ["job:ns:other -> dataset:db:t", "dataset:db:x -> job:ns:other"]
    assert [(one["job"], one["runId"], one["state"]) for one in answer["failedRuns"]] == [
        ("job:ns:load", "load-2", end)
    ]
    write = answer["failedRuns"][0]["lastWrite"]
    assert (write["runId"], ids({"nodes": write["reads"]}), ids({"nodes": write["writes"]})) == (
        "load-1",
        ["dataset:db:a"],
        ["dataset:db:t"],
    )
    text = lineage_text(answer, ["dataset:db:t"])
    assert "its last write, 2026-11-20 12:00:01, was t from a: --state recent shows it" in text
    assert arrows(lineage(engine, "job:ns:load", latest)) == ["dataset:db:b -> job:ns:load"]


@pytest.mark.parametrize("reads", [[], ["b"]])
def test_later_run_that_failed_is_said_at_the_edges_of_the_last_success(
    engine: Engine, reads: list[str]
) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "j", ["a"], ["t"]),
            run("START", 2, "j", reads, run_id="2"),
            run("FAIL", 3, "j", run_id="2"),
        ],
    )

    answer = lineage(engine, "t", direction=UP)

    written = next(edge for edge in answer["edges"] if edge["target"] == "dataset:db:t")
    assert (written["runId"], written["state"]) == ("j-1", "COMPLETE")
    assert written["latestRun"] == {
        "runId": "j-2",
        "state": "FAIL",
        "endedAt": "2026-11-20T12:00:03Z",
    }


def test_edges_say_nothing_of_the_latest_run_where_it_succeeded(engine: Engine) -> None:
    fill(
        engine,
        [run("FAIL", 1, "j", ["a"]), run("COMPLETE", 2, "j", ["a"], ["t"], run_id="2")],
    )

    assert not any("latestRun" in edge for edge in lineage(engine, "t")["edges"])


def test_answer_without_edges_names_the_failed_runs_that_are_all_that_is_known(
    engine: Engine,
) -> None:
    error = {"errorMessage": FACET | {"message": "no such column: x", "programmingLanguage": "SQL"}}
    fill(engine, [run("FAIL", 1, "load", ["a"], ["t"], of_run=error)])

    answer = lineage(engine, "t")
    assert (ids(answer), answer["edges"]) == (["dataset:db:t"], [])
    assert [(one["job"], one["state"], one["error"]) for one in answer["failedRuns"]] == [
        ("job:ns:load", "FAIL", "no such column: x")
    ]
    text = lineage_text(answer, ["dataset:db:t"])
    assert "(the latest run of job load is FAIL: no such column: x" in text
    assert "strandline runs --job 'job:ns:load' shows its runs" in text

    fill(engine, [run("COMPLETE", 2, "load", ["a"], ["t"], run_id="2")])
    assert "failedRuns" not in lineage(engine, "t")


def test_answer_without_edges_names_no_run_that_succeeded(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "load", ["a"], ["t"])])
    fill(engine, [run("COMPLETE", 2, "load", ["a"], ["u"], run_id="2")])

    assert lineage(engine, "t", replace(NOW, newest=True))["edges"] == []
    assert "failedRuns" not in lineage(engine, "t", replace(NOW, newest=True))
