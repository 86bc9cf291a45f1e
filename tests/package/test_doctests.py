"""The examples in docstrings of both distributions say what happens."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for package in ("collector", "spark_integration")
    for path in (ROOT / package).rglob("*.py")
]
WITH_EXAMPLES = sorted(path for path in SOURCES if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_docstrings_are_correct(path: Path) -> None:
    _, *parts = path.relative_to(ROOT).with_suffix("").parts

    result = doctest.testmod(import_module(".".join(parts).removesuffix(".__init__")))

    assert result.attempted > 0
    assert result.failed == 0
