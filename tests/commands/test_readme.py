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
STARTS_SERVERS = ("strandline serve", "make ")


def readme_commands() -> list[str]:
    """Return each command of README's blocks that asks something."""
    blocks = re.findall(r"^```\n((?s:.*?))^```$", (ROOT / "README.md").read_text(), re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return [
        line
        for line in lines
        if line.startswith("strandline ") and not line.startswith(STARTS_SERVERS)
    ]


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


@pytest.mark.parametrize("command", readme_commands())
def test_command_of_readme_answers(command: str, export: str, environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{export}\n{command}"],
        env=environ,
        cwd=environ["XDG_DATA_HOME"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert re.fullmatch(r"export STRANDLINE_URL=http://127\.0\.0\.1:\d+", export)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_readme_has_commands() -> None:
    assert len(readme_commands()) >= 4
