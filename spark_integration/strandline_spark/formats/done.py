"""An execution that has ended, as formats look at it when they ask which snapshot it made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, kept
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.model.statement import Operation


@dataclass(frozen=True, slots=True)
class Done:
    """A finished execution, its kind of write, and the commits reported while it ran.

    A procedure has no QueryExecution.
    """

    execution: JavaObject
    operation: Operation
    commits: Sequence[Commit] = ()
    beside: bool = (
        False  # another statement of this application writes the same table, and has not ended
    )
    all_came: Callable[[], bool] = lambda: (
        True
    )  # whether no commit of this application can have been missed

    called_at: int | None = None  # the begin of a procedure, in milliseconds since 1970

    @property
    def since(self) -> int | None:
        """The begin of its analysis, in milliseconds since 1970.

        It has committed nothing before.
        """
        return begun_at(self.execution) if self.execution is not None else self.called_at

    @property
    def until(self) -> float | None:
        """The time of its end, in milliseconds since 1970, if Spark has reported it.

        It has committed nothing after.
        """
        ended: float | None = kept(self.execution, ENDED)
        return ended


def begun_at(execution: JavaObject) -> int | None:
    """Return the time at which the analysis of a QueryExecution began, in milliseconds since 1970.

    None if Spark has not kept it.
    """
    try:
        return phase_begun(execution.tracker().phases())
    except JAVA_FAILED:
        return None


def phase_begun(phases: JavaObject) -> int | None:
    """Return the begin of the analysis from the text of the phases, or else from their objects."""
    shown = str(phases.toString())
    match = _ANALYSIS.search(shown)
    if match is not None or "analysis" not in shown:
        return int(match[1]) if match else None
    return int(phases.apply("analysis").startTimeMs())


ENDED = "ended"  # by what name the time of an execution's end is kept beside it
_ANALYSIS = re.compile(r"analysis -> PhaseSummary\((\d+),")
