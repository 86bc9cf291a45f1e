"""A streaming query's life, played into the streams of an application."""

from __future__ import annotations

from typing import Any

from emitter_world.builders import Sent, announcer, conf, insert, snapshot, table
from emitter_world.plans import QUERY, RUN, Answers, Handle, Plan, ended, started
from strandline_spark.conf import Conf
from strandline_spark.model.statement import Statement
from strandline_spark.runs.batch_queries import Execution
from strandline_spark.runs.micro_batches import MicroBatch
from strandline_spark.runs.streaming_queries import Streams

CREDITS, TRANSFERS = table("bank.credits"), table("bank.transfers")


class Driver:
    """Plays a query's life into the streams of an application."""

    def __init__(self, handle: Any = None, settings: Conf | None = None, told: int | None = None) -> None:
        self.sent = Sent()
        self.handle: Any = handle or Handle()
        settings = settings or conf()
        sayer = announcer(self.sent, settings)
        self.streams = Streams(settings, Answers(), sayer, lambda qe, query_id: self.handle, lambda query_id: told)

    def start(self, name: str | None = None) -> Driver:
        """Spark says that the query started."""
        self.streams.query_started(QUERY, RUN, name, 500)
        return self

    def batch(
        self, number: int, plan: Plan | None = None, error: str | None = None, parts: Any = (), commits: Any = ()
    ) -> Driver:
        """One micro-batch from begin to end."""
        plan = plan or written(number)
        execution = self.begin(number, plan, parts)
        self.streams.end(MicroBatch(QUERY, RUN, number), execution, ended(number + 1, plan, error), commits)
        return self

    def begin(self, number: int, plan: Plan, parts: Any = ()) -> Execution:
        """A micro-batch begins, and writes inside it end."""
        execution = Execution(started(number + 1, plan, batch=number), 0)
        self.handle.begun = max(self.handle.begun, number)
        self.streams.begin(MicroBatch(QUERY, RUN, number), execution)
        execution.parts.extend(parts)
        return execution

    def end(self, error: str | None = None) -> list[str]:
        """Spark says that the query ended."""
        self.streams.query_terminated(RUN, 90_000, error)
        return self.sent.lines()


def written(number: int, earlier: dict[int, Statement] | None = None) -> Plan:
    """The plan of a micro-batch that makes snapshot 100 + number."""
    made = insert(table("bank.credits", snapshot(str(100 + number), barrier_id=number + 1)), TRANSFERS)
    return Plan(insert(CREDITS, TRANSFERS), made, earlier or {})
