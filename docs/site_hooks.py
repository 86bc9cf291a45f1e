"""Additions to mkdocs.

Links out of docs/ go to the repository, a page that no menu names is listed under "More", and the
parts of the reference that docs/generated.py makes from the program come into their pages.

`mkdocs build --strict` (make docs) fails on a link to a file of the repository that is not there.
"""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

GENERATED = re.compile(r"<!-- generated: (\w+) -->")
OUTWARDS = re.compile(r"\]\((\.\./[^)#]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """Add what the menu leaves out."""
    docs = Path(config["docs_dir"])
    there = sorted(str(file.relative_to(docs)) for file in docs.rglob("*.md"))
    named = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    if left := [name for name in there if name not in named]:
        config["nav"].append({"More": left})
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put generated parts in, and let links to files beside docs/ lead to the repository."""
    docs = Path(config["docs_dir"])
    markdown = GENERATED.sub(lambda mark: _generated(docs.parent).get(mark[1], ""), markdown)

    def outward(link: "re.Match[str]") -> str:
        file = (docs / page.file.src_path).parent.joinpath(link[1]).resolve()
        if file.is_relative_to(docs):
            return link[0]
        if not file.exists():
            raise PluginError(f"{page.file.src_path}: there is no {link[1]}")
        return f"]({config['repo_url']}/blob/main/{file.relative_to(docs.parent)}{link[2] or ''})"

    return OUTWARDS.sub(outward, markdown)


@cache
def _generated(root: Path) -> dict[str, str]:
    """Return the generated parts by name; the program has an environment of its own."""
    command = [root / ".venv/bin/python", "-m", "docs.generated"]
    parts: dict[str, str] = json.loads(subprocess.check_output(command, cwd=root))
    return parts
