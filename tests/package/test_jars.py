"""Fetched jars are exactly the pinned ones, and are fetched once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import jars


def test_jar_that_differs_from_its_pin_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "good.jar").write_bytes(b"good")
    (tmp_path / "other.jar").write_bytes(b"tampered with")
    good = "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c"
    pins = {"good.jar": good, "other.jar": good, "absent.jar": good}

    with pytest.raises(jars.JarsError) as told:
        jars.check(tmp_path, pins, "some-set")

    assert (
        str(told.value)
        == "jars some-set: what was fetched differs from jars.sha256: absent.jar, other.jar"
    )


def test_every_set_is_pinned() -> None:
    assert [name for name in jars.SETS if not jars.pins_of(name)] == []


def test_unknown_set_is_rejected_with_the_known_ones(tmp_path: Path) -> None:
    result = run("iceberg-9.9", {"STRANDLINE_CACHE_DIR": str(tmp_path)})

    assert result.returncode == 1
    assert result.stderr.startswith("jars iceberg-9.9: no such set; there are delta-3.5, ")


def test_fetched_set_needs_neither_network_nor_java(iceberg_jars: str) -> None:
    folder = Path(iceberg_jars.split(",")[0]).parent

    result = run("iceberg-4.1", {"PATH": "", "JAVA_HOME": "/nowhere"})

    assert (result.stdout.strip(), result.returncode) == (str(folder), 0)


def test_a_damaged_set_is_not_used(iceberg_jars: str, tmp_path: Path) -> None:
    folder = Path(iceberg_jars.split(",")[0]).parent
    damaged = tmp_path / "jars" / "iceberg-4.1"
    shutil.copytree(folder, damaged)
    next(damaged.glob("sqlite*.jar")).write_bytes(b"half a download")

    result = run("iceberg-4.1", {"STRANDLINE_CACHE_DIR": str(tmp_path), "JAVA_HOME": "/nowhere"})

    assert (result.stdout, result.returncode) == ("", 1)
    assert result.stderr == "no `java` in JAVA_HOME; install Java 17 or newer\n"


def run(name: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`python -m deploy.jars NAME` with more environment."""
    command = [sys.executable, "-m", "deploy.jars", name]
    return subprocess.run(
        command,
        cwd=jars.ROOT,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
