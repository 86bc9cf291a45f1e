"""The first key: a collector beyond loopback starts on an empty store, and printed commands work."""

import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, serving
from strandline.cli import main, open_store
from strandline.cli.first_key import add_key_of_settings
from strandline.errors import RefusedError, SettingsError
from strandline.logs import make_log
from strandline.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "deploy").rglob("*") if path.suffix != ".json"),
]
KEY = "st_" + "k" * 40
PROTECTED = Settings(port=0, auth="required", memory_bytes=SETTINGS.memory_bytes)
LOG = make_log(level="error")


def printed_commands() -> Iterator[tuple[str, str]]:
    """Give (page, command) of every `keys` command that a page or a file of deploy/ prints."""
    for page in PAGES:
        if not page.is_file():
            continue
        for command in re.findall(
            r"\bstrandline (keys (?:add|list|revoke)[^`\n]*)", page.read_text("utf-8", "replace")
        ):
            yield str(page.relative_to(ROOT)), command.strip()


def status_with(address: str, key: str) -> int:
    return httpx.get(f"{address}/api/v2/keys", headers=bearer(key)).status_code


def test_admin_key_of_the_settings_opens_an_empty_store(engine: Engine) -> None:
    add_key_of_settings(engine, Settings(admin_key=KEY), LOG)

    with serving(engine, PROTECTED) as address:
        assert status_with(address, KEY) == 200
        assert status_with(address, KEY + "x") == 401


def test_missing_key_file_is_made_with_a_key_that_works(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "admin-key"
    settings = Settings(admin_key_file=str(file))

    add_key_of_settings(engine, settings, LOG)
    key = file.read_text().strip()
    add_key_of_settings(engine, settings, LOG)

    assert file.read_text().strip() == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with serving(engine, PROTECTED) as address:
        assert status_with(address, key) == 200


def test_admin_key_of_the_settings_adds_nothing_to_a_store_with_an_admin_key(
    sqlite_engine: Engine, tmp_path: Path
) -> None:
    add_key_of_settings(sqlite_engine, Settings(admin_key=KEY), LOG)

    add_key_of_settings(sqlite_engine, Settings(admin_key_file=str(tmp_path / "other")), LOG)

    assert list(tmp_path.iterdir()) == []


def test_revoked_admin_key_of_the_settings_opens_nothing_again(
    sqlite_url: str, sqlite_engine: Engine
) -> None:
    add_key_of_settings(sqlite_engine, Settings(admin_key=KEY), LOG)
    assert main(["keys", "revoke", "first-admin"], {"STRANDLINE_DATABASE_URL": sqlite_url}) == 0

    with pytest.raises(
        RefusedError, match="the admin key in the settings is revoked; set another one"
    ):
        add_key_of_settings(sqlite_engine, Settings(admin_key=KEY), LOG)


def test_file_without_a_key_is_refused_without_its_content(
    sqlite_engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "admin-key"
    file.write_text("hunter2")

    with pytest.raises(SettingsError) as refused:
        add_key_of_settings(sqlite_engine, Settings(admin_key_file=str(file)), LOG)

    assert str(refused.value) == (
        f"STRANDLINE_ADMIN_KEY_FILE={file} (--admin-key-file): what the file holds "
        "is not 32 to 200 letters, digits and signs of _ - ~ + / ="
    )


def test_keys_are_made_listed_and_revoked_with_a_running_collector(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    add_key_of_settings(engine, Settings(admin_key=KEY), LOG)
    with serving(engine, PROTECTED) as address:

        def keys(*argv: str) -> tuple[int, str, str]:
            code = main(["keys", *argv, "--url", address, "--key", KEY], {})
            out, err = capsys.readouterr()
            return code, out, err

        code, made, _ = keys("add", "me", "--scope", "read", "--namespace", "*")
        listed = keys("list", "--csv")[1]
        key = made.strip()
        jobs = httpx.get(f"{address}/api/v2/jobs", headers=bearer(key)).status_code

        assert (code, jobs) == (0, 200)
        assert [line.split(",")[1] for line in listed.splitlines()] == ["name", "first-admin", "me"]
        assert keys("revoke", "me") == (0, "me: revoked\n", "")
        assert keys("revoke", "me")[0] == 2


@pytest.mark.parametrize(("page", "command"), list(printed_commands()))
def test_printed_command_works_on_an_empty_store(
    page: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/strandline.db"
    if not command.startswith("keys add"):
        main(
            ["keys", "add", "spark", "--scope", "read", "--namespace", "*"],
            {"STRANDLINE_DATABASE_URL": url},
        )
        capsys.readouterr()

    code = main(shlex.split(command), {"STRANDLINE_DATABASE_URL": url})

    assert (code, capsys.readouterr().err) == (0, "")


def test_refusal_of_a_server_prints_a_command_that_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/strandline.db"
    serve = ["serve", "--host", "0.0.0.0", "--port", "0", "--database-url", url]

    assert main(serve, {}) == 1

    printed = re.findall(r"strandline (keys add .*?) \(or set", capsys.readouterr().err)
    assert printed == [f"keys add admin --scope admin --namespace '*' --database-url {url}"]
    assert main(shlex.split(printed[0]), {}) == 0


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["a"], "keys add a --scope read --namespace '*'"),
        (["a", "--scope", "ingest"], "keys add a --scope ingest --namespace '*'"),
        (
            [" ", "--scope", "read", "--namespace", "s*"],
            "keys add me --scope read --namespace 's*'",
        ),
    ],
)
def test_refusal_of_a_key_prints_a_command_that_works(
    argv: list[str], command: str, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ: dict[str, Any] = {"STRANDLINE_DATABASE_URL": sqlite_url}

    assert main(["keys", "add", *argv], environ) == 2

    printed = re.findall(
        r"\(for example: strandline (.*?)\)$", capsys.readouterr().err, re.MULTILINE
    )
    assert set(printed) == {command}
    assert main(shlex.split(printed[0]), environ) == 0


@pytest.mark.postgres
def test_server_waits_for_a_database_that_is_not_up(
    postgres_server: Callable[[str], str],
    copy_of_postgres: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The database comes up during the first pause."""
    name = f"late_{uuid4().hex[:12]}"
    monkeypatch.setattr(time, "sleep", lambda seconds: copy_of_postgres(name))

    open_store.wait_for_database(Settings(database_url=postgres_server(name)), make_log())

    (line,) = capsys.readouterr().err.splitlines()
    assert "waiting for the database" in line
    assert f'database "{name}" does not exist' in line


def test_server_waits_no_longer_than_it_may(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    serve = ["serve", "--port", "0", "--database-url", nobody, "--database-wait-seconds", "0"]

    assert main(serve, {}) == 1

    assert 'connection to server at "127.0.0.1", port 1 failed' in capsys.readouterr().err
