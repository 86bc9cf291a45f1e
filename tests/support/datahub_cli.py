"""DataHub's own command, in an environment of its own below .cache: its dependencies are many, and none of them ours."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import jars

LOCK = Path(__file__).resolve().parents[2] / "locks" / "datahub.txt"
INSTALL_SECONDS = 900
CHECK_SECONDS = 300


def command() -> Path:
    """The command, installed from the lock at first use; where that cannot be, the test is skipped with the reason."""
    folder = jars.cache() / "datahub" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    done, program = folder / "installed", folder / "bin" / "datahub"
    if not done.exists():
        _run([sys.executable, "-m", "venv", str(folder)])
        install = ["install", "--quiet", "--no-input", "--no-deps", "--require-hashes", "-r", str(LOCK)]
        _run([str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *install])
        done.touch()
    return program


def _run(argv: list[str]) -> None:
    result = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if result.returncode:
        pytest.skip(f"DataHub's command cannot be installed here: {(result.stderr or result.stdout).strip()[-300:]}")


def checked(file: Path) -> str:
    """What `datahub check metadata-file` says against a file; "" where it takes it."""
    environ = os.environ | {"DATAHUB_TELEMETRY_ENABLED": "false", "HOME": str(file.parent), "DO_NOT_TRACK": "1"}
    argv = [str(command()), "check", "metadata-file", str(file)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=CHECK_SECONDS, env=environ, check=False)
    return "" if result.returncode == 0 else (result.stderr + result.stdout)[-2000:] or "it failed"
