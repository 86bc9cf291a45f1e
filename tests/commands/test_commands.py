"""The command line as a whole: its index, imports, usage errors and new databases."""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from fixtures.stores import sql
from strandline.cli import main, parser_of
from strandline.cli.commands.exports import ACTIONS
from strandline.cli.declarations import COMMANDS, GROUPS
from strandline.cli.declarations.act import EXPORT_ACTIONS
from strandline.core.exports.formats import GRAPH_FORMATS
from strandline.core.exports.graphs import WRITERS
from strandline.questions.catalog import NodeListQuery
from strandline.questions.lineage import ChangesQuery, ImpactQuery, LineageQuery, PathsQuery
from strandline.questions.parameters import Query
from strandline.questions.received import EventsQuery
from worlds.builders import dataset, event, store

HEAVY = (
    "alembic",
    "kafka",
    "psycopg",
    "starlette",
    "structlog",
    "uvicorn",
    "prometheus_client",
    "rich",
)

LIBRARIES = ("fastapi", "msgspec", "orjson", "pydantic", "pyiceberg", "pyspark", "sqlalchemy")
READER = ("--scope", "read", "--namespace", "*")


def test_the_help_lists_the_commands_in_four_groups() -> None:
    assert list(GROUPS) == ["Ask", "Act", "Run", "Scale"]
    assert len(COMMANDS) == sum(len(commands) for commands in GROUPS.values())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_function_that_runs_it(name: str) -> None:
    parameters = inspect.signature(COMMANDS[name].imported()).parameters

    assert list(parameters) == ["options", "settings"]


def test_graphs_can_be_had_in_the_formats_that_are_offered() -> None:
    assert ("json", *WRITERS) == GRAPH_FORMATS


def test_every_action_on_exports_exists() -> None:
    assert tuple(ACTIONS) == EXPORT_ACTIONS


def imported_by(*commands: list[str], environ: dict[str, str]) -> set[str]:
    """Return the distributions and modules that a process has imported after some commands."""
    asked = (
        "import sys, strandline.cli\n"
        f"for argv in {commands!r}: strandline.cli.main(argv, {environ!r})\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_no_library() -> None:
    helps = [["--help"], ["--version"], ["frobnicate"], *([name, "--help"] for name in COMMANDS)]

    assert imported_by(*helps, environ={}) & {*HEAVY, *LIBRARIES} == set()


@pytest.mark.parametrize(
    "argv",
    [["lineage", "bank.a"], ["versions", "bank.a", "--weak"], ["names"], ["expire", "bank.a"]],
)
def test_an_answer_imports_only_what_it_needs(
    argv: list[str], sqlite_url: str, sqlite_engine: Engine
) -> None:
    store(sqlite_engine, [event("START", inputs=[dataset("bank.a")])])

    imported = imported_by(argv, environ={"STRANDLINE_DATABASE_URL": sqlite_url})

    assert imported & set(HEAVY) == set()
    assert "sqlalchemy" in imported


def test_usage_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lineage"], {}) == 2

    assert capsys.readouterr().err == (
        "strandline lineage: the following arguments are required: node (strandline lineage --help)\n"
    )


@pytest.mark.parametrize("argv", [["--help"], ["-h", "lineage"]])
def test_help_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv, {}) == 0

    words = capsys.readouterr().out.split()
    assert [name for name in COMMANDS if name not in words] == []


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"serve", "consume", "demo"}))
def test_every_answer_is_available_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([name, *(["list"] if name == "keys" else []), "--help"], {})

    assert " --json " in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["frob"], ["--frob", "lineage"], ["--", "lineage", "x"]])
def test_unknown_command_is_reported_in_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv, {}) == 2

    err = capsys.readouterr().err
    assert (err.startswith("strandline: "), err.count("\n")) == (True, 1)


def test_a_table_without_snapshots_has_nothing_to_expire(
    sqlite_url: str, sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    store(sqlite_engine, [event("COMPLETE", outputs=[dataset("bank.a")])])

    assert main(["expire", "bank.a"], {"STRANDLINE_DATABASE_URL": sqlite_url}) == 0
    assert (
        capsys.readouterr().out == "bank.a: no snapshots are known, so there is nothing to expire\n"
    )
    assert main(["expire", "bank.a", "--json"], {"STRANDLINE_DATABASE_URL": sqlite_url}) == 0
    assert json.loads(capsys.readouterr().out) == {
        "namespace": "hive://lake",
        "name": "bank.a",
        "expirable": [],
        "expirableCount": 0,
        "kept": [],
        "keptCount": 0,
        "pinned": [],
        "outsideCount": 0,
    }


@pytest.fixture
def empty_postgres(postgres_server: Callable[[str], str]) -> Iterator[str]:
    """Yield the URL of a PostgreSQL database without any table."""
    name = f"empty_{uuid4().hex[:12]}"
    sql(postgres_server("postgres"), f"CREATE DATABASE {name}")
    yield postgres_server(name)
    sql(postgres_server("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.postgres
def test_an_empty_postgresql_gets_its_tables(
    empty_postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": empty_postgres}
    assert main(["names"], environ) == 1
    assert (
        " is empty: start strandline serve, or set STRANDLINE_DATABASE_URL (--database-url)\n"
        in capsys.readouterr().err
    )

    assert main(["keys", "add", "somebody", *READER], environ) == 0

    assert main(["names"], environ) == 0


@pytest.mark.postgres
def test_database_with_foreign_tables_is_not_migrated_unasked(
    empty_postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": empty_postgres}
    sql(empty_postgres, "CREATE TABLE orders (id integer)")

    assert main(["keys", "add", "somebody", *READER], environ) == 1
    assert capsys.readouterr().err.endswith(
        " has tables, but none of Strandline's: run strandline migrate to add them\n"
    )

    assert main(["migrate"], environ) == 0
    assert main(["keys", "add", "somebody", *READER], environ) == 0


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("lineage", "parameter node has a character that no name can have"),
        ("late", r"not UTF-8: 'a\udcff'"),
    ],
)
def test_non_utf8_argument_is_rejected_in_one_line(
    command: str, problem: str, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are not UTF-8 come from the shell as lone surrogates."""
    assert main([command, "a\udcff", "--database-url", sqlite_url], {}) == 2

    assert capsys.readouterr().err == f"strandline: {problem}\n"


def test_ascii_terminal_gets_an_answer_without_line_drawing(
    sqlite_url: str, sqlite_engine: Engine
) -> None:
    store(
        sqlite_engine,
        [event("COMPLETE", 1, "job", 0, inputs=[dataset("a")], outputs=[dataset("b")])],
    )
    command = [sys.executable, "-m", "strandline", "lineage", "b", "--direction", "upstream"]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "STRANDLINE_DATABASE_URL": sqlite_url}

    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)

    assert "?? job job" in done.stdout


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("lineage", LineageQuery),
        ("impact", ImpactQuery),
        ("paths", PathsQuery),
        ("changes", ChangesQuery),
        ("jobs", NodeListQuery),
        ("datasets", NodeListQuery),
        ("events", EventsQuery),
    ],
)
def test_options_have_the_values_and_the_help_of_the_parameters(
    name: str, query: type[Query]
) -> None:
    options = {action.dest: action for action in parser_of(COMMANDS[name])._actions}
    parameters = query.model_json_schema(by_alias=False)["properties"]
    shared = parameters.keys() & options.keys() - {"node", "job", "format", "limit"}
    assert len(shared) >= 3

    for parameter in shared:
        schema, option = parameters[parameter], options[parameter]
        about = str(option.help).partition(" (default: ")[0]
        assert about.lower() == schema["description"].partition(" (default: ")[0].lower()
        values = schema.get("enum") or schema.get("items", {}).get("enum")
        assert list(option.choices or ()) == (values or [])
