"""Lists as of a past moment, without anything that came later."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.sqlite_first import database_url, own_database_url  # noqa: F401 - PostgreSQL is slow here
from strandline.core.openlineage.times import micros_of
from strandline.errors import QuestionError
from strandline.store.catalog.filters import Filter, states_called
from strandline.store.catalog.lists import datasets_page, jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.sql.pages import decode_cursor
from worlds.builders import NOON, Json, batch, dataset, event, parent, run_id, store, symlink

NOW = micros_of(NOON + timedelta(hours=1))


def then(seconds: float, states: frozenset[str] = frozenset(), **span: float) -> Filter:
    """A list of so many seconds after noon; `since` and `until` are seconds, too."""
    micros = {
        name: micros_of(NOON + timedelta(seconds=value))
        for name, value in {"as_of": seconds, **span}.items()
    }
    return Filter(None, states, micros.get("since"), micros.get("until"), micros["as_of"])


def jobs_of(engine: Engine, asked: Filter) -> dict[str, Json]:
    with engine.connect() as connection:
        return {one["name"]: one for one in jobs_page(connection, asked, NOW, 100, None)["items"]}


def datasets_of(engine: Engine, asked: Filter) -> dict[str, Json]:
    with engine.connect() as connection:
        return {
            one["name"]: one for one in datasets_page(connection, asked, NOW, 100, None)["items"]
        }


def runs_of(engine: Engine, asked: Filter) -> dict[str, Json]:
    with engine.connect() as connection:
        return {
            one["runId"][-1]: one
            for one in runs_page(connection, None, asked, NOW, 100, None)["items"]
        }


def states(found: dict[str, Json], inner: str = "") -> dict[str, str | None]:
    """Return the state of each, or of the run in it."""
    picked = {name: one[inner] if inner else one for name, one in found.items()}
    return {name: None if one is None else one["state"] for name, one in picked.items()}


def app() -> Json:
    """The parent facet of what runs below the run 9 of `app`."""
    return parent(9, "app")


def nightly() -> list[Json]:
    """A run that fails and one that repeats it, below an application."""
    broken = {"errorMessage": {"message": "disk full", "programmingLanguage": "JAVA"}}
    return [
        event("START", 9, "app", 0),
        event("START", 1, "load", 10, facets=app(), outputs=[dataset("bank.load")]),
        event("FAIL", 1, "load", 20, facets=app() | broken, outputs=[dataset("bank.load")]),
        event("START", 2, "load", 30, facets=app(), outputs=[dataset("bank.load")]),
        event("COMPLETE", 2, "load", 40, facets=app(), outputs=[dataset("bank.load")]),
        event("FAIL", 9, "app", 50),
    ]


def test_past_run_has_its_state_and_times(engine: Engine) -> None:
    store(engine, nightly(), NOON)

    assert states(runs_of(engine, then(-1))) == {}
    assert states(runs_of(engine, then(15))) == {"9": "RUNNING", "1": "RUNNING"}
    assert states(runs_of(engine, then(35))) == {"9": "RUNNING", "1": "FAIL", "2": "RUNNING"}
    assert states(runs_of(engine, then(50))) == {"9": "FAIL", "1": "FAIL", "2": "COMPLETE"}

    running, failed = runs_of(engine, then(15))["1"], runs_of(engine, then(35))["1"]
    times = ("running", "startedAt", "endedAt", "createdAt", "updatedAt", "error")
    assert [running.get(key) for key in times] == [
        True,
        "2026-11-20T12:00:10Z",
        None,
        "2026-11-20T12:00:10Z",
        None,
        None,
    ]
    assert "updatedAt" not in running
    assert [failed.get(key) for key in times] == [
        *(False, "2026-11-20T12:00:10Z", "2026-11-20T12:00:20Z"),
        *("2026-11-20T12:00:10Z", "2026-11-20T12:00:20Z", "disk full"),
    ]


def test_past_child_failures_are_counted(engine: Engine) -> None:
    store(engine, nightly(), NOON)

    above = [runs_of(engine, then(seconds))["9"] for seconds in (15, 35, 50)]

    assert [one["failedChildren"] for one in above] == [0, 1, 1]
    assert [one["error"] for one in above] == [None, None, "disk full"]


def test_past_job_has_its_newest_run_of_that_moment(engine: Engine) -> None:
    store(engine, nightly(), NOON)

    found = [states(jobs_of(engine, then(seconds)), "latestRun") for seconds in (5, 15, 25, 35, 45)]

    assert found == [
        {"app": "RUNNING"},
        {"app": "RUNNING", "load": "RUNNING"},
        {"app": "RUNNING", "load": "FAIL"},
        {"app": "RUNNING", "load": "RUNNING"},
        {"app": "RUNNING", "load": "COMPLETE"},
    ]


def test_past_dataset_has_its_newest_write_of_that_moment(engine: Engine) -> None:
    store(
        engine,
        [*nightly(), event("COMPLETE", 3, "report", 60, inputs=[dataset("bank.load")])],
        NOON,
    )

    found = [
        states(datasets_of(engine, then(seconds)), "latestWrite") for seconds in (5, 15, 25, 35, 61)
    ]

    assert found == [
        {},
        *({"bank.load": state} for state in ("RUNNING", "FAIL", "RUNNING", "COMPLETE")),
    ]
    assert datasets_of(engine, then(61))["bank.load"]["updatedAt"] == "2026-11-20T12:01:00Z"
    assert "updatedAt" not in datasets_of(engine, then(45))["bank.load"]


def test_filters_apply_to_the_past_state(engine: Engine) -> None:
    store(engine, nightly(), NOON)

    running, failed = states_called(["running"]), frozenset({"FAIL"})
    assert [*runs_of(engine, then(35, states=running))] == ["9", "2"]
    assert [*runs_of(engine, then(35, states=failed))] == ["1"]
    assert [*jobs_of(engine, then(25, states=failed))] == ["load"]
    assert [*jobs_of(engine, then(35, states=failed))] == []
    assert [*datasets_of(engine, then(25, states=failed))] == ["bank.load"]
    assert [*runs_of(engine, then(45, since=35))] == ["9", "2"]
    assert [*runs_of(engine, then(45, until=5))] == ["9"]


def test_later_activity_does_not_match_an_earlier_period(engine: Engine) -> None:
    store(
        engine,
        [
            event("COMPLETE", run, "load", at_, outputs=[dataset("t")])
            for run, at_ in ((1, 0), (2, 100))
        ],
        NOON,
    )

    assert [*jobs_of(engine, then(50, since=40)), *datasets_of(engine, then(50, since=40))] == []
    assert [*jobs_of(engine, then(50, since=-1)), *datasets_of(engine, then(50, since=-1))] == [
        "load",
        "t",
    ]


def test_period_after_the_moment_is_rejected() -> None:
    with pytest.raises(
        QuestionError,
        match=r"since \(2026-11-20T12:00:20Z\) is after asOf \(2026-11-20T12:00:10Z\)",
    ):
        then(10, since=20)


def test_silent_run_was_lost_unless_a_later_event_came(engine: Engine) -> None:
    lease = {"strandline_heartbeat": {"timeoutSeconds": 60}}
    store(engine, [event("START", 1, "stream", 0, facets=lease)], NOON)

    assert states(runs_of(engine, then(50))) == {"1": "START"}
    assert states(runs_of(engine, then(70))) == {"1": "LOST"}
    assert runs_of(engine, then(70))["1"]["endedAt"] == "2026-11-20T12:01:00Z"

    store(engine, [event("RUNNING", 1, "stream", 100, facets=lease)], NOON + timedelta(seconds=100))

    assert states(runs_of(engine, then(70))) == {"1": "RUNNING"}
    assert states(runs_of(engine, then(170))) == {"1": "LOST"}


def test_run_ended_when_its_parent_had_ended(engine: Engine) -> None:
    start = [event("START", 9, "app", 0), event("START", 1, "app.query", 10, facets=app())]
    store(engine, [*start, event("COMPLETE", 9, "app", 20)], NOON)

    assert states(runs_of(engine, then(15))) == {"9": "RUNNING", "1": "START"}
    assert states(runs_of(engine, then(20))) == {"9": "COMPLETE", "1": "COMPLETE"}
    assert runs_of(engine, then(20))["1"]["endedAt"] == "2026-11-20T12:00:20Z"


def test_run_with_events_after_its_parents_end_was_running(engine: Engine) -> None:
    start = [event("START", 9, "app", 0), event("START", 1, "app.query", 10, facets=app())]
    store(
        engine,
        [*start, event("COMPLETE", 9, "app", 20), event("RUNNING", 1, "app.query", 30)],
        NOON,
    )

    assert states(runs_of(engine, then(25))) == {"9": "COMPLETE", "1": "RUNNING"}
    assert states(runs_of(engine, then(35))) == {"9": "COMPLETE", "1": "RUNNING"}


def test_run_with_only_other_events_had_not_begun(engine: Engine) -> None:
    store(
        engine,
        [
            event("OTHER", 1, "etl", 0),
            event("START", 1, "etl", 20),
            event("COMPLETE", 1, "etl", 30),
        ],
        NOON,
    )

    assert states(runs_of(engine, then(10))) == {"1": "NONE"}
    assert runs_of(engine, then(10))["1"]["startedAt"] == "2026-11-20T12:00:00Z"
    assert runs_of(engine, then(25))["1"]["startedAt"] == "2026-11-20T12:00:20Z"


def ctas(kind: str, run: int, seconds: float) -> Json:
    """A CREATE TABLE AS of `bank.new`."""
    return event(
        kind,
        run,
        "etl",
        seconds,
        outputs=[dataset("bank.new", lifecycleStateChange=lifecycle("CREATE"))],
    )


def lifecycle(change: str) -> Json:
    return {"_producer": "tests", "_schemaURL": "tests", "lifecycleStateChange": change}


def test_table_of_a_failed_create_did_not_exist(engine: Engine) -> None:
    store(
        engine,
        [ctas("START", 1, 0), ctas("FAIL", 1, 10), ctas("START", 2, 20), ctas("COMPLETE", 2, 30)],
        NOON,
    )

    listed = [[*datasets_of(engine, then(seconds))] for seconds in (5, 15, 25, 35)]

    assert listed == [["bank.new"], [], ["bank.new"], ["bank.new"]]


def test_table_was_dropped_until_written_again(engine: Engine) -> None:
    gone = dataset("t", lifecycleStateChange=lifecycle("DROP"))
    store(
        engine,
        [
            event("COMPLETE", 1, "load", 0, outputs=[dataset("t")]),
            event("START", 2, "drop", 10, outputs=[gone]),
            event("COMPLETE", 2, "drop", 20, outputs=[gone]),
            event("COMPLETE", 3, "load", 30, outputs=[dataset("t")]),
        ],
        NOON,
    )

    dropped = [
        datasets_of(engine, then(seconds))["t"].get("droppedAt", "not told")
        for seconds in (5, 15, 25, 35)
    ]

    assert dropped == ["not told", "not told", "2026-11-20T12:00:20Z", None]


def test_table_was_not_dropped_while_its_drop_was_running(engine: Engine) -> None:
    gone = dataset("t", lifecycleStateChange=lifecycle("DROP"))
    store(
        engine,
        [event("START", 2, "drop", 10, outputs=[gone]), event("COMPLETE", 2, "drop", 20)],
        NOON,
    )

    assert [datasets_of(engine, then(seconds))["t"]["droppedAt"] for seconds in (15, 25)] == [
        None,
        "2026-11-20T12:00:10Z",
    ]


def command(kind: str, run: int, name: str, seconds: float) -> Json:
    """An event of a command of an application, as the stock Spark listener reports it."""
    batch_job = {
        "jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"}
    }
    return event(
        kind,
        run,
        f"app.{name}",
        seconds,
        facets=app(),
        job_facets=batch_job,
        outputs=[dataset("db.t")],
    )


def test_command_was_nested_once_both_had_ended(engine: Engine) -> None:
    outer, inner = "atomic_create_table_as_select.db_t", "append_data.lake_db_t"
    store(
        engine,
        [
            command("START", 1, outer, 0),
            command("START", 2, inner, 10),
            command("COMPLETE", 2, inner, 20),
            command("COMPLETE", 1, outer, 30),
            command("COMPLETE", 3, inner, 50),  # by itself
        ],
        NOON,
    )

    found = [
        (sorted(runs_of(engine, then(seconds))), len(jobs_of(engine, then(seconds))))
        for seconds in (25, 35, 55)
    ]

    assert found == [(["1", "2"], 3), (["1"], 2), (["1", "3"], 3)]


def test_job_known_only_as_a_parent_is_listed_from_that_moment(engine: Engine) -> None:
    store(engine, [event("START", 1, "load", 10, facets=app()), event("START", 9, "app", 20)], NOON)

    assert [*jobs_of(engine, then(5))] == []
    assert [(name, one["createdAt"]) for name, one in jobs_of(engine, then(15)).items()] == [
        ("app", None),
        ("load", "2026-11-20T12:00:10Z"),
    ]
    assert jobs_of(engine, then(25))["app"]["createdAt"] == "2026-11-20T12:00:20Z"


def test_dataset_is_listed_once_for_all_its_names(engine: Engine) -> None:
    called = dataset("/lake/t", "file", symlinks=symlink("bank.t"))
    store(engine, [event("COMPLETE", 1, "load", 0, outputs=[called])], NOON)

    assert [*datasets_of(engine, then(-1))] == []
    assert [*datasets_of(engine, then(5))] == [*datasets_of(engine, Filter())]


def test_group_is_that_of_the_moment_or_omitted(engine: Engine) -> None:
    store(
        engine,
        [
            event("START", 2, "etl"),
            *(batch(barrier, barrier_facet={"group": "bank"}) for barrier in (1, 2)),
        ],
        NOON,
    )

    assert "group" not in jobs_of(engine, then(1.5))["stream"]
    assert jobs_of(engine, then(2.5))["stream"]["group"] == "bank"
    assert jobs_of(engine, then(2.5))["etl"]["group"] is None


@pytest.mark.parametrize("page", [jobs_page, datasets_page])
def test_past_pages_add_up_to_the_whole_list(engine: Engine, page: Callable[..., Any]) -> None:
    every = [
        event("COMPLETE", number, f"job{number:03}", number, outputs=[dataset(f"t{number:03}")])
        for number in range(30)
    ]
    store(engine, every, NOON)

    assert paged(engine, page, (str, str)) == paged(engine, page, (str, str), 100)
    assert len(paged(engine, page, (str, str))) == 20


def paged(
    engine: Engine, page: Callable[..., Any], types: tuple[type, ...], limit: int = 7
) -> list[str]:
    found: list[str] = []
    after = None
    with engine.connect() as connection:
        while True:
            answer = page(connection, then(19.5), NOW, limit, after)
            found += [one["id"] if "id" in one else one["runId"] for one in answer["items"]]
            if answer["nextCursor"] is None:
                return found
            after = decode_cursor(answer["nextCursor"], types)


def test_past_runs_are_paged_with_running_ones_first(engine: Engine) -> None:
    short = [event("COMPLETE", number, f"job{number:03}", number) for number in range(30)]
    store(engine, [*short, event("START", 77, "long", 1), event("COMPLETE", 77, "long", 100)], NOON)

    def page(connection: Any, *asked: Any) -> Json:
        return runs_page(connection, None, *asked)

    assert paged(engine, page, (int, int)) == [
        run_id(77),
        *(run_id(number) for number in range(19, -1, -1)),
    ]
