"""The shape of the code: short functions that decide little, short files, names that say something."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("collector/strandline", "spark_integration/strandline_spark")
WRITE_PATH = tuple(
    f"collector/strandline/{room}" for room in ("core/changes", "store/ingest", "store/sql", "store/versions")
)
FOLDERS = (*PACKAGES, "deploy", "examples", "bench", "tests")
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
MANY_DECISIONS = 10
# The share of functions that may decide so often. It was 0.015 for both; what is split is not put together again.
MOST_DECIDING = {"collector/strandline": 0.014, "spark_integration/strandline_spark": 0.009}
TOO_VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
TOO_VAGUE_ENDS = ("Manager", "Service", "Helper", "Handler", "Base", "Impl", "Utils")

BARE = {"told", "said", "made", "known"}  # they say that something happened to a value, not what it is


def files(*folders: str) -> list[Path]:
    """All Python files in some folders of the project, but for migrations: those are data in the order of time."""
    found = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return [file for file in found if "migrations" not in file.parts]


@cache
def tree_of(file: Path) -> ast.Module:
    """What a file holds, read once for all tests."""
    return ast.parse(file.read_text())


def functions(*folders: str) -> Iterator[tuple[str, int]]:
    """(where, lines) of each function; the lines of its body without the docstring."""
    for file in files(*folders):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", lines_of(node)


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From the signature to the end, without decorators and docstring."""
    text = node.body[0] if ast.get_docstring(node) else None
    return (node.end_lineno or 0) - node.lineno + 1 - ((text.end_lineno or 0) - text.lineno + 1 if text else 0)


def decisions_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How often a function decides: branches, loops, handlers, cases, comprehensions with their ifs, each `and` and `or`.

    Functions inside of it count for themselves.
    """
    count, waiting = 0, list[ast.AST](node.body)
    while waiting:
        one = waiting.pop()
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.comprehension(ifs=ifs):
                count += 1 + len(ifs)
            case ast.BoolOp(values=values):
                count += len(values) - 1
        count += isinstance(one, DECISIONS)
        waiting += ast.iter_child_nodes(one)
    return count


def decisions(*folders: str) -> Iterator[tuple[str, int]]:
    """(where, decisions) of each function."""
    for file in files(*folders):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", decisions_of(node)


def classes(*folders: str) -> Iterator[tuple[str, str]]:
    """(where, name) of each class."""
    for file in files(*folders):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", node.name


def wide_tuples(tree: ast.Module) -> list[str]:
    """The types of tuples with more than three positions: who adds one finds nobody who forgot it."""
    named = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple))
    tuples = (node for node in named if isinstance(node.value, ast.Name) and node.value.id == "tuple")
    return [ast.unparse(node) for node in tuples if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 3]


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that code names: variables, parameters, attributes, functions, imports, matches."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(name=name, asname=asname):
                yield node.lineno, asname or name


def bare_names(tree: ast.Module) -> list[tuple[int, str]]:
    """Those of the names that are a bare participle, with or without an underscore before it."""
    return [(line, name) for line, name in names_in(tree) if name.lstrip("_") in BARE]


def shared_classes(trees: Iterable[ast.Module]) -> set[str]:
    """The names that more than one class of some code has."""
    seen, shared = set[str](), set[str]()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                (shared if node.name in seen else seen).add(node.name)
    return shared


def test_no_function_is_longer_than_50_lines() -> None:
    assert [(where, lines) for where, lines in functions(*FOLDERS) if lines > 50] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_short(package: str) -> None:
    lines = [lines for _, lines in functions(package)]

    assert median(lines) <= 8
    assert quantiles(lines, n=10)[-1] <= 25


@pytest.mark.parametrize("package", PACKAGES)
def test_few_functions_decide_much(package: str) -> None:
    counted = dict(decisions(package))
    many = [f"{where}: {count}" for where, count in counted.items() if count >= MANY_DECISIONS]

    assert len(many) < MOST_DECIDING[package] * len(counted), f"of {len(counted)}: {many}"


def test_every_decision_of_a_function_counts() -> None:
    source = """
def f(a):
    if a and a or a:
        return [b for b in a if b if not b]
    for b in a:
        try:
            match b:
                case 1: ...
                case 2: ...
        except OSError:
            return 1 if b else 2
    while a:
        def g(): return 1 if a else 2
"""
    f = ast.parse(source).body[0]

    assert isinstance(f, ast.FunctionDef)
    assert decisions_of(f) == 3 + 3 + 1 + 2 + 1 + 1 + 1


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files(*FOLDERS)}

    assert {file: lines for file, lines in lengths.items() if lines > 400} == {}


def test_names_say_something() -> None:
    vague_files = [str(file.relative_to(ROOT)) for file in files(*FOLDERS) if file.stem in TOO_VAGUE]
    vague_classes = [where for where, name in classes(*FOLDERS) if name.endswith(TOO_VAGUE_ENDS)]

    assert (vague_files, vague_classes) == ([], [])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_says_what_it_holds(folder: str) -> None:
    docstrings = {file: ast.get_docstring(tree_of(file)) for file in files(folder) if file.stat().st_size}

    assert [str(file.relative_to(ROOT)) for file, text in docstrings.items() if not text] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_a_bare_participle(package: str) -> None:
    found = {str(file.relative_to(ROOT)): bare_names(tree_of(file)) for file in files(package)}

    assert {file: names for file, names in found.items() if names} == {}


def test_from_an_event_to_its_rows_every_column_has_a_name() -> None:
    found = {str(file.relative_to(ROOT)): wide_tuples(tree_of(file)) for file in files(*WRITE_PATH)}

    assert {file: tuples for file, tuples in found.items() if tuples} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_name_occurs_twice(package: str) -> None:
    assert shared_classes(map(tree_of, files(package))) == set()


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "def f(*, said): ...",
        "one.made",
        "f(known=1)",
        "def _told(): ...",
        "from a import b as known",
        "match a:\n    case b as made: ...",
        "match a:\n    case [*said]: ...",
        "[made for made in b]",
    ],
)
def test_bare_names_are_noticed(source: str) -> None:
    assert bare_names(ast.parse(source))


def test_wide_tuples_are_noticed() -> None:
    source = "A = tuple[int, int, str, str]\ndef f(a: list[tuple[int, str, str, bytes]]) -> tuple[int, str, str]: ..."

    assert wide_tuples(ast.parse(source)) == ["tuple[int, int, str, str]", "tuple[int, str, str, bytes]"]


def test_names_that_only_contain_such_a_word_are_none() -> None:
    assert bare_names(ast.parse("well_known = unknown = made_at = 'told'")) == []


def test_shared_class_names_are_noticed() -> None:
    assert shared_classes(map(ast.parse, ("class A: ...\nclass B: ...", "def f():\n    class A: ..."))) == {"A"}
