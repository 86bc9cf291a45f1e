"""The shape of the code: short functions, short files, names that say something."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("collector/strandline", "spark_integration/strandline_spark")
FOLDERS = (*PACKAGES, "deploy", "examples", "bench", "tests")
TOO_VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
TOO_VAGUE_ENDS = ("Manager", "Service", "Helper", "Handler", "Base", "Impl", "Utils")


def files(*folders: str) -> list[Path]:
    """All Python files in some folders of the project, but for migrations: those are data in the order of time."""
    found = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return [file for file in found if file.parent.name != "versions"]


def functions(*folders: str) -> Iterator[tuple[str, int]]:
    """(where, lines) of each function; the lines of its body without the docstring."""
    for file in files(*folders):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", lines_of(node)


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From the signature to the end, without decorators and docstring."""
    told = node.body[0] if ast.get_docstring(node) else None
    return (node.end_lineno or 0) - node.lineno + 1 - ((told.end_lineno or 0) - told.lineno + 1 if told else 0)


def classes(*folders: str) -> Iterator[tuple[str, str]]:
    """(where, name) of each class."""
    for file in files(*folders):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", node.name


def test_no_function_is_longer_than_50_lines() -> None:
    assert [(where, lines) for where, lines in functions(*FOLDERS) if lines > 50] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_short(package: str) -> None:
    lines = [lines for _, lines in functions(package)]

    assert median(lines) <= 8
    assert quantiles(lines, n=10)[-1] <= 25


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files(*FOLDERS)}
    del lengths["collector/strandline/store/schema/tables.py"]  # the schema is readable because it is one file

    assert {file: lines for file, lines in lengths.items() if lines > 400} == {}


def test_names_say_something() -> None:
    vague_files = [str(file.relative_to(ROOT)) for file in files(*FOLDERS) if file.stem in TOO_VAGUE]
    vague_classes = [where for where, name in classes(*FOLDERS) if name.endswith(TOO_VAGUE_ENDS)]

    assert (vague_files, vague_classes) == ([], [])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_says_what_it_holds(folder: str) -> None:
    told = {file: ast.get_docstring(ast.parse(file.read_text())) for file in files(folder) if file.stat().st_size}

    assert [str(file.relative_to(ROOT)) for file, text in told.items() if not text] == []
