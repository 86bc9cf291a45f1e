"""The offsets of a micro-batch from its query's offset log.

The log is written before the micro-batch runs.
"""

from __future__ import annotations

import re

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm

Offsets = tuple[str | None, str | None]
_NAMED = re.compile(
    r"^[A-Za-z_][\w.-]*:(?=[{\[\"])"
)  # sources may have names: `orders:{"logOffset":1}`
_MOST = 64


def logged_offsets(execution: JavaObject, jvm: Jvm) -> list[Offsets]:
    """(start, end) of each source, in the log's order; empty where there is no log."""
    try:
        state, batch = str(execution.checkpointLocation()), int(execution.currentBatchId())
    except JAVA_FAILED:
        return []
    log = state.rpartition("/")[0] + "/offsets"
    ends = _logged(f"{log}/{batch}", jvm)
    starts = _logged(f"{log}/{batch - 1}", jvm) if batch else []
    return [(starts[i] if i < len(starts) else None, end) for i, end in enumerate(ends)]


def _logged(location: str, jvm: Jvm) -> list[str | None]:
    """A version, the batch's own settings, then a line a source.

    `-` for one that has nothing yet.
    """
    lines = jvm.first_lines(location, _MOST)[2:]
    return [None if line == "-" else _NAMED.sub("", line) for line in lines]
