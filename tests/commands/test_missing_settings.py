"""Commands without the database, collector or setting that they need name what can be set."""

import argparse
from pathlib import Path

import pytest

from strandline.cli import actions_of, collector, main, parser_of
from strandline.cli.declarations import COMMANDS

NEED_A_DATABASE = [
    "lineage t",
    "impact t",
    "paths a b",
    "changes --since 1d",
    "namespaces",
    "search t",
    "jobs",
    "datasets",
    "runs",
    "events",
    "rejected",
    "snapshots t",
    "versions t",
    "late t",
    "names",
    "names strip x",
    "expire t",
    "expire t --execute",
    "rollback t 1",
    "rollback t 1 --rehearse",
    "retire j",
    "catalog-options",
    "tables publish --catalog lake",
    "export --to file events.jsonl",
    "exports",
    "forget --job a b",
    "forget --job a b --execute",
    "retention --retention-days 3",
    "keys list",
    "keys revoke k",
    "check",
    "backup copy.db",
    "replay --dead-letters",
    "archive --to archive",
]
MAKE_A_DATABASE = {"serve", "consume", "demo", "migrate", "restore", "import", "rebuild"}
ASK_SPARK = {"report"}


def test_every_command_is_in_one_of_the_lists() -> None:
    tried = {command.split()[0] for command in NEED_A_DATABASE}

    assert tried | MAKE_A_DATABASE | ASK_SPARK == set(COMMANDS)


@pytest.mark.parametrize("command", NEED_A_DATABASE)
def test_command_without_a_database_names_what_can_be_set(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is made; `impact` returns 2, because 1 says that something depends on the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(collector, "LOCAL_COLLECTOR", "http://127.0.0.1:1")

    code = main(command.split(), {})

    (line,) = capsys.readouterr().err.splitlines()
    silent, ways = "", "STRANDLINE_DATABASE_URL (--database-url)"
    if takes_url(command):
        ways = f"STRANDLINE_URL (--url) or {ways}"
        silent = (
            ""
            if command.startswith("keys")
            else (", and no collector answers at http://127.0.0.1:1")
        )
    assert line.removeprefix("strandline: ").removeprefix("database: ") == (
        f"there is no database {tmp_path}/strandline/strandline.db yet{silent}: "
        f"start strandline serve, or set {ways}"
    )
    assert code == (2 if command.startswith("impact") else 1)
    assert list(tmp_path.iterdir()) == []


def takes_url(command: str) -> bool:
    if command.startswith("names strip"):  # it changes the database
        return False
    parser = parser_of(COMMANDS[command.split()[0]])
    return any("--url" in options_of(each) for each in (parser, *actions_of(parser)))


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "consume",
            (
                "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS (--kafka-bootstrap-servers) is not set: "
                "there is no topic to consume"
            ),
        ),
        (
            "archive --from-topic --to archive",
            (
                "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS (--kafka-bootstrap-servers) is not set: "
                "there is no topic to archive"
            ),
        ),
        (
            "retention",
            "STRANDLINE_RETENTION_DAYS (--retention-days) is not set: nothing is too old",
        ),
        (
            "export --to datahub",
            (
                "STRANDLINE_DATAHUB_URL (--datahub-url) is not set: set it, or name the address: "
                "strandline export --to datahub http://host:port"
            ),
        ),
        ("export --to file", "no file is named: strandline export --to file FILE"),
        (
            "import --from marquez",
            (
                "STRANDLINE_MARQUEZ_URL (--marquez-url) is not set: set it, or name the address: "
                "strandline import --from marquez http://host:5000"
            ),
        ),
        ("import --from datahub", "no file is named: strandline import --from datahub FILE"),
    ],
)
def test_command_without_a_setting_names_it(
    command: str,
    problem: str,
    environ: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(command.split(), environ)

    assert (code, capsys.readouterr().err) == (2, f"strandline: {problem}\n")
    assert list(tmp_path.iterdir()) == []


def test_rebuild_like_a_missing_database_makes_none(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = ["--into", f"sqlite:///{tmp_path}/new.db", "--like", f"sqlite:///{tmp_path}/live.db"]

    code = main(["rebuild", "--from", str(tmp_path), *stores], environ)

    problem = f"there is no database {tmp_path}/live.db: --like names the live store"
    assert (code, capsys.readouterr().err) == (1, f"strandline: {problem}\n")
    assert list(tmp_path.iterdir()) == []


def test_collector_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["jobs", "--url", "http://127.0.0.1:1"], {})

    assert code == 1
    assert capsys.readouterr().err == (
        "strandline: cannot reach the collector at http://127.0.0.1:1 "
        "([Errno 111] Connection refused): start strandline serve there, "
        "or set STRANDLINE_URL (--url)\n"
    )


def test_postgresql_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["jobs", "--database-url", "postgresql://127.0.0.1:1/x"], {})

    assert code == 1
    assert capsys.readouterr().err == (
        "strandline: the database refuses: connection failed: connection to server at "
        '"127.0.0.1", port 1 failed: Connection refused; '
        "check STRANDLINE_DATABASE_URL (--database-url)\n"
    )


def test_command_that_needs_the_database_takes_no_url(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["retire", "t", "--url", "http://127.0.0.1:1"], environ)

    assert code == 2
    assert "unrecognized arguments: --url http://127.0.0.1:1" in capsys.readouterr().err
