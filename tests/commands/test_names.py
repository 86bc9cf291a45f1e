"""`strandline names`: rules are previewed, applied, and then used by every writer."""

import json

import pytest
from sqlalchemy import Engine

from strandline.cli import main
from strandline.store.sql.engine import make_engine
from worlds.builders import dataset, event, live, rows, store

DATES = r"(/\d{4}-\d\d-\d\d)$"


def names(engine: Engine, *argv: str) -> int:
    url = engine.url.render_as_string(hide_password=False)
    return main(["names", *argv], {"STRANDLINE_DATABASE_URL": url})


def of_day(run: int, day: str) -> dict[str, object]:
    return event("START", run, f"job{run}", inputs=[dataset(f"/lake/t/{day}", "hdfs://lake")])


def test_pattern_is_stripped_from_stored_and_new_names(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    store(engine, [of_day(1, "2026-11-20")])

    assert names(engine, "strip", DATES) == 0
    assert capsys.readouterr().out.splitlines() == [
        "hdfs://lake /lake/t/2026-11-20 -> /lake/t",
        "nothing is changed yet: say --apply",
    ]
    assert live(engine) == {"job1": ["< /lake/t/2026-11-20"]}

    assert names(engine, "strip", "--apply", "--json", DATES) == 0
    assert json.loads(capsys.readouterr().out) == {
        "applied": True,
        "datasets": [
            {"namespace": "hdfs://lake", "name": "/lake/t/2026-11-20", "becomes": "/lake/t"}
        ],
    }
    assert names(engine, "strip", DATES) == 0
    assert capsys.readouterr().out.splitlines() == ["no dataset changes its name"]
    store(engine, [of_day(2, "2026-11-21")])

    assert live(engine) == {"job1": ["< /lake/t"], "job2": ["< /lake/t"]}
    assert rows(engine, "SELECT name FROM datasets") == [("/lake/t",), ("/lake/t/2026-11-20",)]


def test_join_merges_two_names(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    store(engine, [of_day(1, "x"), event("START", 3, "job3", outputs=[dataset("/copy", "file")])])

    assert names(engine, "join", "hdfs://lake", "/lake/t/x", "file", "/copy") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is changed yet: say --apply"
    assert names(engine, "join", "--apply", "hdfs://lake", "/lake/t/x", "file", "/copy") == 0

    assert rows(engine, "SELECT count(DISTINCT canonical_id) FROM datasets") == [(1,)]
    assert live(engine) == {"job1": ["< /copy"], "job3": ["> /copy"]}


def test_invalid_pattern_is_rejected(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine = make_engine(sqlite_url)

    assert names(engine, "strip", "(") == 2
    assert capsys.readouterr().err.startswith("strandline: invalid regular expression: '('")
    engine.dispose()


def test_names_are_changed_in_the_database_not_at_a_collector(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine(sqlite_url)

    assert names(engine, "strip", "x", "--url", "http://127.0.0.1:1") == 2

    assert capsys.readouterr().err == (
        "strandline: --url: names strip changes names in the database itself; "
        "set STRANDLINE_DATABASE_URL (--database-url)\n"
    )
    engine.dispose()


def test_names_without_arguments_lists_joined_names(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    store(
        engine,
        [of_day(1, "2026-11-20"), event("START", 3, "job3", outputs=[dataset("/copy", "file")])],
    )
    assert names(engine) == 0
    assert capsys.readouterr().out.startswith("every dataset has one name; ")

    names(engine, "strip", "--apply", DATES)
    names(engine, "join", "--apply", "hdfs://lake", "/lake/t", "file", "/copy")
    capsys.readouterr()
    assert names(engine) == 0

    assert capsys.readouterr().out.splitlines() == [
        r"stripped from paths: (/\d{4}-\d\d-\d\d)$",
        "file /copy",
        "  also hdfs://lake /lake/t  (joined by hand, pattern)",
        "  also hdfs://lake /lake/t/2026-11-20  (pattern)",
    ]
    assert names(engine, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["patterns"], [one["name"] for one in answer["items"]]) == ([DATES], ["/copy"])


def test_families_of_jobs_are_listed(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("daily_2026-11-26", "daily_2026-11-27", "etl_v1", "etl_v2", "report")
    store(engine, [event("START", run, name) for run, name in enumerate(named, 1)])

    assert names(engine, "jobs") == 0

    assert [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "daily_{date}  (2 jobs, such as daily_2026-11-26)",
        "etl_v{number}  (2 jobs, perhaps different jobs, such as etl_v1)",
    ]


def test_families_of_jobs_are_joined_after_a_dry_run(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ("daily_2026-11-26", "daily_2026-11-27", "report")
    store(engine, [event("START", run, name) for run, name in enumerate(named, 1)])

    assert names(engine, "jobs", "tests", "daily_{date}") == 0
    assert capsys.readouterr().out.splitlines() == [
        "tests daily_2026-11-26 -> daily_{date}",
        "tests daily_2026-11-27 -> daily_{date}",
        "nothing is changed yet: say --apply",
    ]
    assert rows(engine, "SELECT count(*) FROM jobs") == [(3,)]

    assert names(engine, "jobs", "tests", "daily_{date}", "--apply", "--json") == 0
    assert json.loads(capsys.readouterr().out)["jobs"][0] == {
        "namespace": "tests",
        "name": "daily_2026-11-26",
        "becomes": "daily_{date}",
    }
    store(engine, [event("START", 4, "daily_2026-11-28")])
    assert rows(engine, "SELECT name FROM jobs") == [("daily_{date}",), ("report",)]

    assert names(engine, "jobs", "tests", "daily_{date}") == 0
    assert names(engine, "jobs", "tests") == 0
    assert names(engine) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "no job changes its name",
        "no names of jobs differ only in a date, an id or a number",
        "joined jobs: tests daily_{date}",
    ]


def test_a_text_that_is_no_pattern_is_rejected(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = make_engine(sqlite_url)

    assert names(engine, "jobs", "tests", "daily") != 0
    assert "'daily' is not a pattern of job names" in capsys.readouterr().err
    engine.dispose()
