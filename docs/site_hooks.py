"""Additions to mkdocs.

Links out of docs/ go to the repository, and a page that no menu names is listed under "More".

`mkdocs build --strict` (make docs) fails on a link to a file of the repository that is not there.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

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
    """Let links to files beside docs/ lead to the repository."""
    docs = Path(config["docs_dir"])

    def outward(link: "re.Match[str]") -> str:
        file = (docs / page.file.src_path).parent.joinpath(link[1]).resolve()
        if file.is_relative_to(docs):
            return link[0]
        if not file.exists():
            raise PluginError(f"{page.file.src_path}: there is no {link[1]}")
        return f"]({config['repo_url']}/blob/main/{file.relative_to(docs.parent)}{link[2] or ''})"

    return OUTWARDS.sub(outward, markdown)
