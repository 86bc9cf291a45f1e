"""Draws the pictures of docs/analysis.md: `strandline analyse --json | python docs/analysis_pictures.py [FOLDER]`.

A bar a row, in the order of the report: what most datasets come from, and the columns that most columns come from.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROW, LEFT, RIGHT, TOP, MOST = 26, 300, 420, 48, 12
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600 } .small { fill: #616e7c }
.bar { fill: #2f7f86 } .second { fill: #a8d5d8 } .back { fill: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #e4e7eb } .small { fill: #9aa5b1 } .bar { fill: #58b8c0 }
.second { fill: #2b5a5f } .back { fill: #12181f } }
</style>"""


class Bar(NamedTuple):
    """A row: its label, its length, how much of it is drawn in the stronger colour, and what stands behind it."""

    label: str
    length: int
    strong: int
    note: str


def picture(title: str, note: str, bars: Sequence[Bar]) -> str:
    """The drawing, light or dark as its reader has it."""
    width, height = LEFT + RIGHT + 170, TOP + ROW * len(bars) + 14
    unit = RIGHT / max((bar.length for bar in bars), default=1)
    rows = "\n".join(_drawn(bar, TOP + ROW * place, unit) for place, bar in enumerate(bars))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">\n'
        f'{STYLE}\n<rect class="back" width="{width}" height="{height}"/>\n<text class="title" x="16" y="22">{escape(title)}</text>\n'
        f'<text class="small" x="16" y="40">{escape(note)}</text>\n{rows}\n</svg>\n'
    )


def _drawn(bar: Bar, top: int, unit: float) -> str:
    ends = [(bar.length, "second"), (bar.strong, "bar")]
    rects = "".join(
        f'<rect class="{kind}" x="{LEFT}" y="{top + 5}" width="{length * unit:.1f}" height="{ROW - 10}"/>'
        for length, kind in ends
        if length
    )
    label = f'<text x="{LEFT - 10}" y="{top + 18}" text-anchor="end">{escape(bar.label)}</text>'
    return f'{label}{rects}<text class="small" x="{LEFT + bar.length * unit + 8:.1f}" y="{top + 18}">{escape(bar.note)}</text>'


def impact(rows: Iterable[dict[str, Any]]) -> list[Bar]:
    """Datasets by how many come from them; all of a bar is alike."""
    return [
        Bar(_short(row["dataset"]), row["downstream"], row["downstream"], f"{row['downstream']} below, {row['readers']} readers")
        for row in rows
    ]  # fmt: skip


def columns(rows: Iterable[dict[str, Any]]) -> list[Bar]:
    """Columns by how many come from them; the stronger part by value, the rest by filters, joins or unknown ways."""
    return [
        Bar(f"{_short(row['dataset'])}.{row['column']}", row["downstream_columns"], row["by_value"],
            f"{row['downstream_columns']}, {row['by_value']} of them by value")
        for row in rows
    ]  # fmt: skip


def _short(name: str) -> str:
    last = name.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return last if len(last) <= 38 else f"{last[:37]}…"


def main(answer: dict[str, Any], folder: Path) -> None:
    """Draw both reports."""
    pictures = (
        ("impact", "Datasets by how many others come from them", impact),
        ("columns", "Columns by how many others come from them (dark: by value)", columns),
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, title, bars_of in pictures:
        report = answer["reports"][name]
        bars = bars_of(report["rows"][:MOST])
        note = f"the first {len(bars)} of {report['total']} rows of strandline analyse --report {name}"
        (folder / f"analysis-{name}.svg").write_text(picture(title, note, bars))


if __name__ == "__main__":
    main(json.load(sys.stdin), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
