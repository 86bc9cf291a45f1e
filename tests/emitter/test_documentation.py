"""Every conf key is declared, and so documented; the package exports what it promises."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import strandline_spark
from strandline_spark.conf_keys import declared_keys

PACKAGE = Path(strandline_spark.__file__).parent


def test_conf_keys_are_named_only_where_they_are_declared() -> None:
    named = {
        (module.name, text.value)
        for module in PACKAGE.rglob("*.py")
        for text in ast.walk(ast.parse(module.read_text()))
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and re.fullmatch(r"spark\.(strandline|openlineage)\.[\w.-]*", text.value)
    }

    assert named - {("conf_keys.py", str(key)) for key in declared_keys()} == {
        ("_boot.py", "spark.strandline.enabled")  # which every start of Python reads
    }


def test_keys_that_transports_read_are_declared() -> None:
    transports = "".join(
        module.read_text() for module in (PACKAGE / "delivery/transports").glob("*.py")
    )
    read = {
        f"spark.openlineage.transport.{key}"
        for key in re.findall(r'conf\.get\(\s*"([\w.]+)"', transports)
    }

    assert len(read) >= 10
    assert read - {*declared_keys()} == set()


def test_every_public_name_exists_and_is_typed() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        alias.asname
        for block in tree.body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    assert typed == {*strandline_spark.__all__, "__version__"}
    assert [name for name in map(str, typed) if not hasattr(strandline_spark, name)] == []


def test_no_module_hides_a_name_of_the_package() -> None:
    """An imported submodule would hide a package attribute of the same name."""
    assert [
        name
        for name in strandline_spark.__all__
        if find_spec(f"strandline_spark.{name}") is not None
    ] == []
    assert [
        name
        for name in strandline_spark.__all__
        if isinstance(getattr(strandline_spark, name), ModuleType)
    ] == []
