"""The source of a command's answers, where nobody names a database or a collector."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from fixtures.servers import serving
from strandline.cli import main
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

ASKED = ["datasets", "--csv"]


@pytest.fixture
def port(sqlite_engine: Engine) -> Iterator[str]:
    """Give the port of a collector that knows the bank."""
    fill(sqlite_engine, bank())
    with serving(sqlite_engine) as url:
        yield url.rpartition(":")[2]


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the user's data folder an empty one, and return Strandline's place in it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "strandline"


def test_collector_of_this_machine_answers_where_no_database_is(
    port: str, data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ASKED, {"STRANDLINE_PORT": port}) == 0

    printed = capsys.readouterr()
    assert "/lake/bank/balance" in printed.out
    assert printed.err == f"strandline: asking the collector at http://127.0.0.1:{port}\n"
    assert not data_folder.exists()


def test_strandline_url_names_the_collector(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ASKED, {"STRANDLINE_URL": f"http://127.0.0.1:{port}"}) == 0

    printed = capsys.readouterr()
    assert "/lake/bank/balance" in printed.out
    assert printed.err == ""


def test_database_in_the_data_folder_comes_first_and_says_so(
    port: str, data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = data_folder / "strandline.db"
    main(["migrate"], {"STRANDLINE_DATABASE_URL": f"sqlite:///{file}"})
    capsys.readouterr()

    assert main(ASKED, {"STRANDLINE_PORT": port}) == 0

    printed = capsys.readouterr()
    assert "balance" not in printed.out
    assert printed.err == (
        f"strandline: asking {file}; `--url http://127.0.0.1:{port}` asks the collector that runs there\n"
    )


def test_named_database_is_asked_without_a_word(
    port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"STRANDLINE_DATABASE_URL": f"sqlite:///{tmp_path}/named.db", "STRANDLINE_PORT": port}
    main(["migrate"], named)
    capsys.readouterr()

    assert main(ASKED, named) == 0

    printed = capsys.readouterr()
    assert ("balance" in printed.out, printed.err) == (False, "")


@pytest.mark.usefixtures("data_folder")
def test_without_database_and_collector_the_remedy_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(ASKED, {"STRANDLINE_PORT": "9"}) == 1

    problem = capsys.readouterr().err
    assert problem.startswith("strandline: there is no database ")
    assert problem.endswith(" yet: strandline serve makes it, --database-url names another\n")
