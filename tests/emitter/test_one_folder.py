"""Each table format is one folder, and Spark class names are in one file only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import strandline_spark
from strandline_spark.columns.commands import COMMANDS
from strandline_spark.extraction.writes import readers
from strandline_spark.formats.registry import formats

PACKAGE = Path(strandline_spark.__file__).parent
OWN = ("org.apache.spark.", "org.apache.hadoop.", "org.apache.commons.", "com.fasterxml.")


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """The texts in the code of some folders, each with its file; docstrings are none."""
    for path in (path for folder in folders for path in sorted((PACKAGE / folder).rglob("*.py"))):
        tree = ast.parse(path.read_text())
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in said
            ):
                yield path.relative_to(PACKAGE).as_posix(), node.value


def test_a_format_s_commands_are_named_in_its_folder_only() -> None:
    own = {
        name
        for one in formats()
        for name in (*one.writes, *one.commands, *one.plans_in, *one.without_columns)
    }

    assert len(own) > 15
    elsewhere = texts("columns", "extraction", "jvm", "openlineage", "plans", "runs")
    assert [(file, text) for file, text in elsewhere if text in own] == []


def test_commands_are_read_as_their_format_says() -> None:
    for one in formats():
        assert readers().keys() >= one.writes.keys()
        assert COMMANDS.keys() >= one.commands.keys()


def test_spark_class_names_are_in_one_file() -> None:
    named = [
        (file, text)
        for file, text in texts("")
        if text.startswith(OWN) and not file.startswith("formats/")
    ]

    assert {file for file, _ in named} == {"jvm/class_names.py"}
