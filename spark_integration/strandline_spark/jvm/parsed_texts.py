r"""Texts in which Spark's objects show themselves.

They are parsed because that takes one call instead of several. Those of `TEXTS` are tried once, at
the emitter's start, on an object made for it (`internals`). Where one is not as it was seen on
Spark 3.5 to 4.3, `holds` is False from then on and the objects are asked. That takes more calls and
loses nothing. The others can only be read: where one of them is not as it was seen, that is logged
and counted.

>>> text_in("Some(orders)"), text_in("None"), is_plain("lake.orders"), is_plain("lake.`odd name`")
('orders', None, True, False)
>>> counts_in("Map(numFiles -> SQLMetric(id: 7, name: Some(number of written files), value: 1))")
{'numFiles': 1}
>>> kind_and_place("FileSink[file:/out]")
('FileSink', 'file:/out')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from strandline_spark.swallowed import swallowed

# Names in Spark are words; Hudi's have blanks: number of inserted rows -> SQLMetric(id: 6, name:
# Some(..), value: 2)
_METRIC = re.compile(r"(\w[\w ]*) -> SQLMetric\(id: \d+, name: .*?, value: (-?\d+)\)")
_PLAIN = re.compile(r"\w+(\.\w+)*")


@dataclass(eq=False)
class ParsedText:
    """One kind of text, and what is done where it does not hold."""

    instead: str
    holds: bool = True


OPTION = ParsedText("optional values in one call: they are asked for one by one")
IDENTIFIER = ParsedText("names of tables in one call: they are asked for part by part")
METRICS = ParsedText("the metrics of a write in one call: they are asked for one by one")
TEXTS = (OPTION, IDENTIFIER, METRICS)


def text_in(shown: str) -> str | None:
    """Return what an Option of a text holds, by how it shows itself."""
    return shown[len("Some(") : -1] if shown.startswith("Some(") else None


def is_plain(shown: str) -> bool:
    """Return true if an Identifier shows itself as its parts with dots between.

    None of them may need quotes.
    """
    return IDENTIFIER.holds and _PLAIN.fullmatch(shown) is not None


def counts_in(shown: str) -> dict[str, int]:
    """The metrics of a map from names to metrics."""
    return {name: int(value) for name, value in _METRIC.findall(shown)}


def kind_and_place(shown: str) -> tuple[str, str]:
    """Kind and place of a streaming source or sink of Spark's older kind.

    Only those of places show one.
    """
    kind, _, place = shown.removesuffix("]").partition("[")
    if kind.startswith("File") and not place:
        swallowed("a stream's folder is not known", ValueError(f"{kind} does not show it"))
    return kind, place
