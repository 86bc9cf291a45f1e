"""Both wheels, built from the tree and installed into a fresh environment.

STRANDLINE_WHEELS names a folder with wheels that were built already: a release tests the very files
that it signs.
"""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    built = os.environ.get("STRANDLINE_WHEELS")
    folder = Path(built) if built else tmp_path_factory.mktemp("wheels")
    if not built:
        command = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
        subprocess.run(
            [*command, str(ROOT), str(ROOT / "spark_integration")], check=True, timeout=300
        )
    return {file.name.split("-")[0]: file for file in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def fresh(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheels before this one's other packages."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [*PIP, "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, wheels.values())], check=True, timeout=300)
    return python


def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def said(python: Path, program: str) -> str:
    """Return the output of a program under a Python that sees nothing of the checkout."""
    command = [str(python), "-c", program]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=python.parent, check=True
    )
    return result.stdout.strip()


def test_collector_wheel_contains_schemas_types_demo_and_migrations(
    wheels: dict[str, Path],
) -> None:
    schemas = {
        f"strandline/schemas/{file.relative_to(ROOT / 'schemas')}"
        for file in (ROOT / "schemas").rglob("*.json")
    }

    found = names(wheels["strandline"])

    assert schemas
    assert schemas <= found
    assert "strandline/py.typed" in found
    assert {
        "strandline/demo_files/examples/bank/ingest.py",
        "strandline/demo_files/deploy/kafka.py",
    } <= found
    assert [
        name
        for name in found
        if name.startswith("strandline/store/migrations/versions/") and name.endswith(".py")
    ]
    assert {name.split("/")[0] for name in found} == {"strandline", "strandline-0.1.0.dist-info"}


def test_emitter_wheel_contains_its_hook_and_no_server(wheels: dict[str, Path]) -> None:
    found = names(wheels["strandline_spark"])

    assert {"strandline_spark.pth", "strandline_spark.start", "strandline_spark/py.typed"} <= found
    assert {name.split("/")[0] for name in found} == {
        "pyspark_strandline_aligned.py",
        "pyspark_strandline_lineage.py",  # where Spark looks for a data source of that name
        "strandline_spark",
        "strandline_spark.pth",
        "strandline_spark.start",
        "strandline_spark-0.1.0.dist-info",
    }


def test_bare_python_loads_only_the_hook(fresh: Path) -> None:
    program = (
        "import sys; print(sorted(name for name in sys.modules if name.startswith('strandline')))"
    )

    assert said(fresh, program) == "['strandline_spark', 'strandline_spark._boot']"


def test_the_command_is_installed(wheels: dict[str, Path], fresh: Path) -> None:
    assert (fresh.parent / "strandline").exists()
    assert said(fresh, "import strandline; print(strandline.__version__)") == "0.1.0"
