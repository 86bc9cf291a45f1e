"""The output of commands: JSON for programs; tables and colours on a terminal.

The same as plain text everywhere else.

rich is only imported where stdout is a terminal: a pipe reads the same bytes on every machine.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from strandline.escaping import escaped, escaped_lines

Line = Callable[[], Sequence[str]]
Rows = Sequence[Sequence[str]]

STYLES = {
    r"\bFAIL\b": "bold red",
    r"\b(LOST|STOPPED)\b": "yellow",
    r"\b(RUNNING|START)\b": "cyan",
    r"\bCOMPLETE\b": "green",
    r"\(not (followable here(: [^)]*)?|proven)\)": "magenta",
    r"[├└│─]+": "dim",
}
NOTHING = "-"
WIDEST = 10_000


def state_word(state: str) -> str:
    """Return the word for a run's state: stopped, as on the page, where OpenLineage has ABORT.

    >>> state_word("ABORT"), state_word("FAIL")
    ('STOPPED', 'FAIL')
    """
    return "STOPPED" if state == "ABORT" else state


def counted(number: int, what: str, many: str | None = None) -> str:
    """So many of something, in words.

    >>> counted(1, "row"), counted(2, "row"), counted(0, "box", "boxes")
    ('1 row', '2 rows', '0 boxes')
    """
    return f"{number} {what if number == 1 else many or f'{what}s'}"


def tell(answer: Any, lines: Line, *, as_json: bool) -> None:
    """Print the answer: JSON for programs, lines for people."""
    if as_json:
        print_json(answer)
    else:
        show(lines())


def print_json(answer: Any) -> None:
    """Print the answer for programs."""
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")


def tell_list(
    options: Namespace,
    answer: Any,
    items: Sequence[Mapping[str, Any]],
    cut: str = "",
    columns: Sequence[str] = (),
) -> bool:
    """Print a list as JSON (`answer`) or CSV (`items`), and return whether either was asked for.

    `columns` are those of the CSV, whatever is in it. `cut` says what of a list in CSV is missing;
    it goes to stderr, as CSV has no place for it.
    """
    if options.format == "json":
        print_json(answer)
    elif options.format == "csv":
        from strandline.core.exports.rows import csv_of

        write_text(csv_of(items, columns, others=not columns))
        if cut:
            warn(cut)
    return options.format is not None


def warn(problem: str) -> None:
    """Print a problem to stderr as one line."""
    print(f"strandline: {escaped(problem)}", file=sys.stderr)


def write_text(text: str) -> None:
    """Print a format for programs as it is, but let it not steer a terminal."""
    sys.stdout.write(escaped_lines(text) if sys.stdout.isatty() else text)


def show(lines: Iterable[str]) -> None:
    """Print lines for people; a terminal shows states in colours."""
    text = "\n".join(map(escaped, lines))
    if not sys.stdout.isatty():
        sys.stdout.write(text + "\n")
        return
    from rich.console import Console

    Console(highlight=False).print(_coloured(text), soft_wrap=True)


def show_table(head: Sequence[str], rows: Rows, after: Sequence[str] = ()) -> None:
    """Show a table for people, and the lines that follow it.

    On a terminal that is too narrow for it, lines wrap as they are.

    An empty cell is a dash, so that columns can be counted; a last column without any content is
    left out.
    """
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    filled = [[escaped(cell) or NOTHING for cell in row] for row in rows]
    lines = _aligned([head, *filled])
    if not sys.stdout.isatty() or not _is_drawn(head, filled):
        show([*lines, *after])
    elif after:
        show(after)


def _is_drawn(head: Sequence[str], rows: Rows) -> bool:
    """Draw the table, if the terminal is wide enough.

    A name or an id that is cut cannot be copied.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(*head, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(_coloured, row))
    if console.measure(table, options=console.options.update(width=WIDEST)).maximum > console.width:
        return False
    console.print(table)
    return True


def _aligned(rows: Rows) -> list[str]:
    """Return the rows as lines whose columns are aligned.

    >>> _aligned([["NAME", "STATE"], ["etl", "FAIL"]])
    ['NAME  STATE', 'etl   FAIL']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _coloured(text: str) -> Any:
    from rich.text import Text

    coloured = Text(text)
    for pattern, style in STYLES.items():
        coloured.highlight_regex(pattern, style)
    return coloured


def one_line(text: str | None, most: int = 120) -> str:
    r"""Return the first line of a text, cut where it is long.

    >>> one_line("Division by zero\n  at line 3"), one_line("abcdef", 4)
    ('Division by zero', 'abc…')
    """
    first = next(iter((text or "").strip().splitlines()), "")
    return first if len(first) <= most else f"{first[: most - 1]}…"


def short_time(text: str | None) -> str:
    """Return a moment of an answer to the second, in UTC.

    >>> short_time("2026-11-20T12:00:21.500000Z")
    '2026-11-20 12:00:21'
    """
    return (text or "").replace("T", " ").partition(".")[0].rstrip("Z")
