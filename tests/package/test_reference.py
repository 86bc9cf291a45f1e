"""The pages of docs/reference that are made from the program."""

import re
from pathlib import Path

from docs.generated import PARTS
from strandline.cli.declarations import COMMANDS

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"


def test_each_generated_part_stands_in_one_page() -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))

    assert sorted(re.findall(r"<!-- generated: (\w+) -->", pages)) == sorted(PARTS)


def test_generated_parts_show_what_the_program_declares() -> None:
    parts = {name: [*part()] for name, part in PARTS.items()}

    assert "| `STRANDLINE_PORT` | `5000` | the port to listen on |" in parts["settings"]
    assert (
        "| `strandline_events_total{source, outcome}` | counter | Events: stored, duplicate, dead "
        "letter, unread (a fault of ours), tombstone (without a value) |" in parts["metrics"]
    )
    assert {f"### strandline {name}\n" for name in COMMANDS} <= {*parts["commands"]}
    assert "### GET /api/v2/lineage\n" in parts["rest"]
    assert "| `node`, required | string, repeatable |  | " in "\n".join(parts["rest"])
    assert "```python\nenable(spark: Any) -> bool\n```\n" in parts["python"]
