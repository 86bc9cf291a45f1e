"""The errors that Strandline raises on purpose are one tree, which its module draws."""

import ast
import re
from pathlib import Path

from strandline import errors

PACKAGE = Path(errors.__file__).parent
TREE = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.StrandlineError)
}


def test_no_other_module_adds_to_the_tree() -> None:
    elsewhere = {
        f"{file.relative_to(PACKAGE)}: {node.name}"
        for file in PACKAGE.rglob("*.py")
        if file != PACKAGE / "errors.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id in TREE for base in node.bases)
    }

    assert elsewhere == set()


def test_drawing_shows_each_error_below_its_parent() -> None:
    drawn: dict[str, str] = {}
    parents = ["StrandlineError"]
    for line in (errors.__doc__ or "").splitlines():
        if branch := re.match(r"    ([│ ]*)[├└]── (\w+)", line):
            depth = len(branch[1]) // 4 + 1
            parents[depth:] = [branch[2]]
            drawn[branch[2]] = parents[depth - 1]

    bases = {name: kind.__bases__[0].__name__ for name, kind in TREE.items()}
    assert drawn == {name: base for name, base in bases.items() if name != "StrandlineError"}
