"""Errors that the emitter goes on after.

Each kind is counted, and logged once with what is missing because of it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter

_LOG = logging.getLogger("strandline")
_lock = threading.Lock()
_counts: Counter[tuple[str, str]] = Counter()
_MOST = 1000  # kinds


def swallowed(missing: str, error: BaseException) -> str:
    """Note an error; `missing` says in constant words what is not reported because of it.

    The error in one line.
    """
    kind = (missing, type(error).__name__)
    with _lock:
        first = kind not in _counts
        if len(_counts) < _MOST or not first:
            _counts[kind] += 1
    text = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    if first:
        _LOG.warning(
            "strandline: %s: %s. The job is not affected; further errors of this kind are "
            "counted in the run facet strandline_emitter, "
            "and logged with their traceback at DEBUG (logger strandline)",
            missing,
            text,
        )
    _LOG.debug("strandline: %s", missing, exc_info=error)
    return text


def counted() -> dict[str, int]:
    """Return the counts of each kind since the driver started, by missing thing and error class."""
    with _lock:
        return {f"{missing} ({name})": count for (missing, name), count in _counts.items()}
