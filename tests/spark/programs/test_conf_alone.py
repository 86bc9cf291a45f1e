"""Activation by conf alone: `python job.py`, spark-submit, and the zip for pyFiles."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from deploy import pyfiles
from fixtures.emitter.drivers import SparkProgram, emitting

ROOT = Path(__file__).resolve().parents[3]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(3).write.parquet("out")
home = sys.modules["strandline_spark"].__file__
worker = spark.sparkContext.range(1).map(lambda _: "strandline_spark.activation" in sys.modules).collect()
spark.stop()
print(home, worker[0])
"""
EXPECTED_EVENTS = [
    "START bank [] -> []",
    "START bank.~/out [] -> [out]",
    "COMPLETE bank.~/out [] -> [out]",
    "COMPLETE bank [] -> []",
]


def environment(folder: Path, *wheels: Path) -> Path:
    """The Python of a fresh environment with these wheels.

    This one's packages, but not its own two, lie behind them.
    """
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    if wheels:
        install = [*PIP, "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*install, *map(str, wheels)], check=True, timeout=300)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "zz_behind.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # .pth files there are not read
    return python


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with both wheels, as a user has it."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT), str(ROOT / "spark_integration")], check=True, timeout=300)
    return environment(folder / "env", *folder.glob("*.whl"))


def submit(*options: str) -> list[str]:
    """The command spark-submit of PySpark."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return [str(Path(spec.origin).parent / "bin" / "spark-submit"), *options]


@pytest.mark.slow
@pytest.mark.spark
def test_python_job_with_wheels_and_conf_is_reported(
    fresh: Path, tmp_path: Path, java: str
) -> None:
    driver = SparkProgram(tmp_path, JOB, emitting(tmp_path), python=fresh)
    ran = driver.run()

    assert ran.code == 0, ran.err[-2000:]
    assert driver.lines() == EXPECTED_EVENTS
    home, in_worker = ran.out.split()
    assert home.startswith(str(fresh.parent.parent))
    assert in_worker == "False"


@pytest.mark.slow
@pytest.mark.spark
def test_spark_submit_with_command_line_conf_is_reported(
    fresh: Path, tmp_path: Path, java: str
) -> None:
    conf = [
        part for key, value in emitting(tmp_path).items() for part in ("--conf", f"{key}={value}")
    ]
    driver = SparkProgram(tmp_path, JOB, python=fresh)
    ran = driver.run(submit(*conf))

    assert ran.code == 0, ran.err[-2000:]
    assert driver.lines() == EXPECTED_EVENTS


@pytest.mark.slow
@pytest.mark.spark
def test_spark_submit_with_the_zip_needs_no_installation(tmp_path: Path, java: str) -> None:
    archive = pyfiles.build(tmp_path / "dist")
    driver = SparkProgram(tmp_path, JOB, emitting(tmp_path), python=environment(tmp_path / "env"))
    ran = driver.run(submit("--py-files", str(archive)))

    assert ran.code == 0, ran.err[-2000:]
    assert driver.lines() == EXPECTED_EVENTS
    home, in_worker = ran.out.split()
    assert Path(home).parts[-3:] == (archive.name, "strandline_spark", "__init__.py")
    assert in_worker == "False"


def test_zip_is_complete_and_reproducible(tmp_path: Path) -> None:
    first, second = pyfiles.build(tmp_path / "one"), pyfiles.build(tmp_path / "two")

    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {
        "sitecustomize.py",
        "strandline_spark/_boot.py",
        "kafka/__init__.py",
        "openlineage/client/event_v2.py",
    } <= {*names}
    assert [name for name in names if name.endswith(".so")] == []
