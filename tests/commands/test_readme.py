"""README's commands run as they stand on the recorded demo, in a shell without settings."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = str(Path(sys.executable).parent)
BLOCKS = re.findall(r"^```\n((?s:.*?))^```$", (ROOT / "README.md").read_text(), re.MULTILINE)
COMMANDS = [
    line.removeprefix(".venv/bin/")
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith(".venv/bin/strandline ")
]
((SHOWN_COMMAND, SHOWN_ANSWER),) = (
    block.removeprefix("$ ").split("\n", 1) for block in BLOCKS if block.startswith("$ ")
)


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a shell without settings and without a database."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")
    }
    home = str(tmp_path_factory.mktemp("home"))
    path = f"{FOLDER}{os.pathsep}{environ['PATH']}"
    return environ | {"PATH": path, "XDG_DATA_HOME": home, "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def export(environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the `export` line that the demo prints, while the demo runs."""
    folder = tmp_path_factory.mktemp("demo")
    arguments = f"DEMO_ARGS=--port 0 --dir {folder}"
    command = ["make", "-o", ".venv/.run", "demo", "REPLAY=1", "KEEP=1", arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        lines = (line.strip() for line in demo.stdout)
        exported = next((line for line in lines if line.startswith("export ")), "")
        yield exported
        os.killpg(demo.pid, 15)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_readme_answers(command: str, export: str, environ: dict[str, str]) -> None:
    done = in_shell(command, export, environ)

    assert export
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_readme_shows_what_the_command_prints(export: str, environ: dict[str, str]) -> None:
    """Ages count from now."""
    done = in_shell(SHOWN_COMMAND, export, environ)

    assert re.sub(r"\d+ min", "N min", done.stdout) == re.sub(r"\d+ min", "N min", SHOWN_ANSWER)


def test_readme_has_commands() -> None:
    assert len(COMMANDS) >= 3


def in_shell(
    command: str, export: str, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as a person types it, somewhere outside the project."""
    return subprocess.run(
        ["sh", "-c", f"{export}\n{command}"],
        env=environ,
        cwd=environ["XDG_DATA_HOME"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
