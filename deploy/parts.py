"""`python -m deploy.parts [--all]`.

Fetch into .cache the parts that the tests need and pip does not bring, each once.

These are the jars of Spark's table formats, the Kafka broker and the stock OpenLineage listener;
with `--all` also DataHub's own command, which checks what is exported to DataHub. Prints what
cannot be had and why, and succeeds all the same: tests that need such a part are skipped with the
reason.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from deploy import jars

SETS = ("kafka", "iceberg-4.1", "delta-4.1", "spark-kafka-4.1", "openlineage-2.13")
DATAHUB_LOCK = jars.ROOT / "locks" / "datahub.txt"
INSTALL_SECONDS = 900


class PartError(Exception):
    """A part cannot be had; the message says why."""


def datahub_command() -> Path:
    """Return the path of DataHub's command in an environment of its own.

    Its dependencies are many, and none of them ours.
    """
    return _datahub_folder() / "bin" / "datahub"


def has_datahub() -> bool:
    """Return whether DataHub's command is installed as locked."""
    return (_datahub_folder() / "installed").exists()


def install_datahub() -> None:
    """Install DataHub's command from its lock, unless it is there."""
    with jars.locked(jars.cache() / "datahub.lock"):
        if has_datahub():
            return
        folder = _datahub_folder()
        install = [
            "install",
            "--quiet",
            "--no-input",
            "--no-deps",
            "--require-hashes",
            "-r",
            str(DATAHUB_LOCK),
        ]
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *install])
        (folder / "installed").touch()


def _datahub_folder() -> Path:
    # An environment knows its own path: a cache that several checkouts link to has one.
    return (
        jars.cache().resolve()
        / "datahub"
        / hashlib.sha256(DATAHUB_LOCK.read_bytes()).hexdigest()[:12]
    )


def _run(command: list[str]) -> None:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PartError(f"DataHub's command is not installed after {INSTALL_SECONDS} s") from error
    if result.returncode:
        raise PartError(
            "DataHub's command cannot be installed: "
            f"{(result.stderr or result.stdout).strip()[-300:]}"
        )


def main(arguments: list[str]) -> int:
    """Fetch the parts."""
    for name in SETS:
        try:
            jars.fetch(name)
        except jars.JarsError as error:
            print(f"not fetched: {error}", file=sys.stderr)
    if "--all" in arguments:
        try:
            install_datahub()
        except PartError as error:
            print(f"not fetched: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
