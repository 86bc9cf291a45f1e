"""The pages of docs/reference that are made from the program."""

import re

import pytest

from docs.generated import KEPT, PARTS, REFERENCE, page_of, with_part
from strandline.cli.declarations import COMMANDS


def test_each_generated_part_stands_in_one_page() -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))

    marked = re.findall(r"<!-- generated: (\w+) -->", pages)
    assert sorted(marked) == sorted([*PARTS, *KEPT])


@pytest.mark.parametrize("name", KEPT)
def test_kept_part_is_what_the_program_declares(name: str) -> None:
    page = page_of(name).read_text()

    assert page == with_part(page, name), "make reference writes it anew"


def test_generated_parts_show_what_the_program_declares() -> None:
    parts = {name: [*part()] for name, part in (PARTS | KEPT).items()}

    assert "| `STRANDLINE_PORT` | `5000` | the port to listen on |" in parts["settings"]
    assert (
        "| `strandline_events_total{source, outcome}` | counter | Events: stored, duplicate, dead "
        "letter, unread (a fault of ours), tombstone (without a value) |" in parts["metrics"]
    )
    assert (
        "| `spark.strandline.reads` | `false` | report actions that only read (`collect`, `show`) |"
        in parts["spark_conf"]
    )
    assert {f"### strandline {name}\n" for name in COMMANDS} <= {*parts["commands"]}
    assert "### GET /api/v2/lineage\n" in parts["rest"]
    assert "| `node`, required | string, repeatable |  | " in "\n".join(parts["rest"])
    assert "```python\nenable(spark: Any) -> bool\n```\n" in parts["python"]
