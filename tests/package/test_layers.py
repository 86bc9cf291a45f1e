"""The import contracts, which `make check` looks after, would notice a wrong import."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import matrix

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("collector/strandline", "spark_integration/strandline_spark")
# A package, a module that it must not import, and the contract that says so.
WRONG_IMPORTS = [
    ("strandline.core", "strandline.store.sql.engine", "layers of the collector"),
    ("strandline.store", "strandline.api.app", "layers of the collector"),
    ("strandline.history", "strandline.cli.answers", "layers of the collector"),
    ("strandline.runtime", "strandline.transports.kafka", "layers of the collector"),
    ("strandline.imports", "strandline.transports.files", "layers of the collector"),
    ("strandline.exporters", "strandline.alerts.webhooks", "layers of the collector"),
    (
        "strandline.exporters.datahub",
        "strandline.exporters.openlineage",
        "a target imports no other target",
    ),
    ("strandline.store.sql", "strandline.store.lineage.relations", "areas of the store"),
    ("strandline.store.schema", "threading", "the store starts no thread"),
    ("strandline.core.redaction", "strandline.core.openlineage.names", "areas of the core"),
    ("strandline.api.http", "strandline.api.routers.health", "areas of the API"),
    (
        "strandline.core.versions",
        "strandline.core.openlineage.times",
        "the model of versions imports errors only",
    ),
    ("strandline.demo", "strandline_spark", "the two distributions do not know each other"),
    ("strandline_spark.plans", "strandline_spark.formats.registry", "layers of the emitter"),
    ("strandline_spark.model", "strandline_spark.jvm.client", "layers of the emitter"),
    ("strandline_spark.consistency", "strandline_spark.runs.emitter", "layers of the emitter"),
    (
        "strandline_spark.consistency",
        "strandline_spark.sources.lineage_tables",
        "layers of the emitter",
    ),
    ("strandline_spark.runs", "strandline.core", "the two distributions do not know each other"),
]


@pytest.mark.slow
def test_every_wrong_import_breaks_its_contract(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    expected = []
    for number, (package, imported, contract) in enumerate(WRONG_IMPORTS):
        source_root = tmp_path / (
            "spark_integration" if package.startswith("strandline_spark") else "collector"
        )
        module = source_root.joinpath(*package.split("."), f"wrong_{number}.py")
        module.write_text(f"import {imported}\n")
        expected.append((contract, f"{package}.wrong_{number} -> {imported}"))

    reported = broken_contracts(tmp_path)

    assert [
        (contract, line) for contract, line in expected if line not in reported.get(contract, "")
    ] == []


def broken_contracts(root: Path) -> dict[str, str]:
    """Return what import-linter reports about each broken contract of a tree."""
    environ = os.environ | {
        "PYTHONPATH": f"{root / 'collector'}:{root / 'spark_integration'}",
        "COLUMNS": "200",
    }
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    result = subprocess.run(
        command, cwd=root, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    report = result.stdout.partition("Broken contracts")[2]
    assert report, result.stdout + result.stderr
    sections = re.split(r"^(.+)\n-+\n", report, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def test_tests_of_the_matrix_need_the_emitter_alone() -> None:
    """The matrix environments contain neither the collector nor its dependencies."""
    missing = ("strandline.", "collector.", "sqlalchemy")
    files = [path for folder in matrix.TESTS for path in sorted((ROOT / folder).rglob("*.py"))]
    imported = [
        (path, line.split()[1])
        for path in files
        for line in path.read_text().splitlines()
        if _imports(line)
    ]

    assert len(imported) > 100
    assert [
        (path.name, module) for path, module in imported if f"{module}.".startswith(missing)
    ] == []


def _imports(line: str) -> bool:
    return line.startswith(("import ", "from "))
