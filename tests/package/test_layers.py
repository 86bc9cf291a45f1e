"""The import contracts hold, and would notice if they did not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import matrix

ROOT = Path(__file__).resolve().parents[2]
COLLECTOR, EMITTER = "collector/strandline", "spark_integration/strandline_spark"


def broken_contracts(root: Path) -> list[str]:
    """The contracts that import-linter finds broken in a tree."""
    environ = os.environ | {"PYTHONPATH": f"{root / 'collector'}:{root / 'spark_integration'}"}
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert "Contracts:" in result.stdout, result.stderr
    return [line.removesuffix(" BROKEN") for line in result.stdout.splitlines() if line.endswith(" BROKEN")]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The contracts and both packages, to be broken."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in (COLLECTOR, EMITTER):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.slow
def test_the_contracts_hold() -> None:
    assert broken_contracts(ROOT) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        (f"{COLLECTOR}/core/wrong.py", "import strandline.store.sql.engine", "layers of the collector"),
        (f"{COLLECTOR}/store/wrong.py", "import strandline.api.app", "layers of the collector"),
        (f"{COLLECTOR}/history/wrong.py", "import strandline.cli.answers", "layers of the collector"),
        (f"{COLLECTOR}/runtime/wrong.py", "import strandline.transports.kafka", "layers of the collector"),
        (f"{COLLECTOR}/imports/wrong.py", "import strandline.transports.files", "layers of the collector"),
        (f"{COLLECTOR}/exporters/wrong.py", "import strandline.alerts.webhooks", "layers of the collector"),
        (
            f"{COLLECTOR}/exporters/datahub/wrong.py",
            "import strandline.exporters.marquez",
            "a target imports no other target",
        ),
        (f"{COLLECTOR}/store/sql/wrong.py", "import strandline.store.lineage.relations", "areas of the store"),
        (f"{COLLECTOR}/store/schema/wrong.py", "import threading", "the store starts no thread"),
        (f"{COLLECTOR}/core/redaction/wrong.py", "import strandline.core.openlineage.names", "areas of the core"),
        (f"{COLLECTOR}/api/http/wrong.py", "import strandline.api.endpoints.health", "areas of the API"),
        (
            f"{COLLECTOR}/core/versions/wrong.py",
            "import strandline.core.openlineage.times",
            "the model of versions imports errors only",
        ),
        (f"{COLLECTOR}/wrong.py", "import strandline_spark", "the two distributions do not know each other"),
        (f"{EMITTER}/plans/wrong.py", "import strandline_spark.formats.registry", "layers of the emitter"),
        (f"{EMITTER}/model/wrong.py", "import strandline_spark.jvm.client", "layers of the emitter"),
        (f"{EMITTER}/consistency/wrong.py", "import strandline_spark.runs.emitter", "layers of the emitter"),
        (f"{EMITTER}/consistency/wrong.py", "import strandline_spark.sources.lineage_tables", "layers of the emitter"),
        (f"{EMITTER}/wrong.py", "import strandline.core", "the two distributions do not know each other"),
    ],
)
def test_a_wrong_import_breaks_its_contract(copy: Path, file: str, line: str, contract: str) -> None:
    (copy / file).write_text(f"{line}\n")

    assert broken_contracts(copy) == [contract]


def test_tests_of_the_matrix_need_the_emitter_alone() -> None:
    """Its environments have neither the collector nor what that needs."""
    missing = ("strandline.", "collector.", "sqlalchemy")
    files = [path for folder in matrix.TESTS for path in sorted((ROOT / folder).rglob("*.py"))]
    imported = [(path, line.split()[1]) for path in files for line in path.read_text().splitlines() if _imports(line)]

    assert len(imported) > 100
    assert [(path.name, module) for path, module in imported if f"{module}.".startswith(missing)] == []


def _imports(line: str) -> bool:
    return line.startswith(("import ", "from "))
