"""How a streaming source or sink of Spark's older kind shows itself, which is all that tells of it.

>>> kind_and_place("FileSink[file:/out]")
('FileSink', 'file:/out')
"""

from __future__ import annotations

from strandline_spark.swallowed import swallowed


def kind_and_place(shown: str) -> tuple[str, str]:
    """Kind and place of a streaming source or sink of Spark's older kind.

    Only those of places show one.
    """
    kind, _, place = shown.removesuffix("]").partition("[")
    if kind.startswith("File") and not place:
        swallowed("a stream's folder is not known", ValueError(f"{kind} does not show it"))
    return kind, place
