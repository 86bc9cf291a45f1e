"""An execution that has ended, as formats look at it when they ask which snapshot it made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, answer, ask, known_answer
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
        ended: float | None = known_answer(self.execution, ENDED)
        return ended


def begun_at(execution: JavaObject) -> int | None:
    """Return the time at which the analysis of a QueryExecution began, in milliseconds since 1970.

    None if Spark has not kept it.
    """
    try:
        begun = answer(execution, "begun", lambda query: ask(query, _BEGUN)[0])
    except JAVA_FAILED:
        return None
    return int(begun) if begun is not None else None


ENDED = "ended"  # by what name the time of an execution's end is known
_BEGUN = "tracker.phases[analysis].startTimeMs"
