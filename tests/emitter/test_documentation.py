"""docs/reference/spark-conf.md documents every conf key, and the package exports what it promises."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import strandline_spark

PACKAGE = Path(strandline_spark.__file__).parent
PAGE = (PACKAGE.parents[1] / "docs/reference/spark-conf.md").read_text()


def test_every_conf_key_is_documented() -> None:
    source = (PACKAGE / "conf.py").read_text()
    ours = {f"spark.strandline.{key}" for key in re.findall(r'_STRANDLINE \+ "([\w.]+)"', source)}
    ours |= {
        f"spark.strandline.{key}" for key in re.findall(r'_number\(entries, "([\w.]+)"', source)
    }
    theirs = {
        f"spark.openlineage.{key}" for key in re.findall(r'_OPENLINEAGE \+ "([\w.]+)"', source)
    }

    assert len(ours) > 10
    named = {
        "spark.openlineage.appName": ".appName",
        "spark.openlineage.transport.": "spark.openlineage.transport.type",
    }
    named["spark.openlineage.facets.disabled"] = "spark.openlineage.facets.NAME.disabled"
    assert [key for key in sorted(ours | theirs) if named.get(key, key) not in PAGE] == []


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
