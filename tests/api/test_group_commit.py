"""Group commit: requests share a transaction. The test controls when a commit returns."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import pytest
from sqlalchemy.exc import DataError, OperationalError

from strandline.api.writer.group_commit import Writer, patience_after
from strandline.errors import StrandlineError
from strandline.logs import make_log
from strandline.metrics import Metrics
from strandline.store.ingest.take import Outcome, Record, validated
from worlds.sample_events import as_bytes, run_event

EVENT = validated(as_bytes(run_event()), datetime(2026, 11, 20, tzinfo=UTC))
SECONDS = 60


class Commits:
    """Commits that wait for `gate`; `sizes` has the number of events of each."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.gate = threading.Semaphore(0)
        self._begun = threading.Semaphore(0)

    def __call__(self, records: Sequence[Record]) -> list[Outcome]:
        self.sizes.append(len(records))
        self._begun.release()
        assert self.gate.acquire(timeout=SECONDS)
        return [Outcome("stored", b"") for _ in records]

    async def begun(self) -> None:
        """Wait until the next commit has begun."""
        assert await asyncio.to_thread(self._begun.acquire, timeout=SECONDS)


def played(
    story: Callable[[Writer, Commits], Awaitable[None]],
    patience: Callable[[float], float],
    metrics: Metrics | None = None,
) -> list[int]:
    """The sizes of the commits of a story."""
    commits = Commits()
    writer = Writer(
        commits,
        max_waiting=10,
        batch_records=1000,
        metrics=metrics or Metrics(),
        log=make_log(level="error"),
        patience=patience,
    )
    writer.start()
    try:
        asyncio.run(asyncio.wait_for(_as_coroutine(story(writer, commits)), SECONDS))
    finally:
        commits.gate.release(10)
        writer.stop()
    return commits.sizes


async def _as_coroutine(story: Awaitable[None]) -> None:
    await story


async def two_senders(writer: Writer, commits: Commits) -> asyncio.Task[list[Outcome]]:
    """One sends, and while that is committed another one does.

    Gives the other, after the first was answered.
    """
    first = asyncio.create_task(writer.write([EVENT]))
    await commits.begun()
    second = asyncio.create_task(writer.write([EVENT]))
    await asyncio.sleep(0)
    commits.gate.release()
    await first
    return second


def test_sender_that_sends_again_at_once_shares_the_next_commit() -> None:
    async def story(writer: Writer, commits: Commits) -> None:
        second = await two_senders(writer, commits)
        again = asyncio.create_task(writer.write([EVENT]))
        commits.gate.release(2)
        await asyncio.gather(second, again)

    assert played(story, patience=lambda _: SECONDS) == [1, 2]


def test_writer_waits_only_briefly_for_a_sender_that_stays_away() -> None:
    async def story(writer: Writer, commits: Commits) -> None:
        second = await two_senders(writer, commits)
        commits.gate.release()
        await second

    assert played(story, patience=patience_after) == [1, 1]


def test_full_transaction_commits_without_waiting() -> None:
    async def story(writer: Writer, commits: Commits) -> None:
        first = asyncio.create_task(writer.write([EVENT]))
        await commits.begun()
        second = asyncio.create_task(writer.write([EVENT] * 1000))
        await asyncio.sleep(0)
        commits.gate.release(2)
        await asyncio.gather(first, second)

    assert played(story, patience=lambda _: 10 * SECONDS) == [1, 1000]


def test_metric_counts_waiting_requests() -> None:
    metrics, waiting = Metrics(), []

    def note() -> None:
        waiting.append(metrics.registry.get_sample_value("strandline_waiting_requests"))

    async def story(writer: Writer, commits: Commits) -> None:
        first = asyncio.create_task(writer.write([EVENT]))
        await commits.begun()
        others = [asyncio.create_task(writer.write([EVENT])) for _ in range(2)]
        await asyncio.sleep(0)
        note()
        commits.gate.release(3)
        await asyncio.gather(first, *others)
        note()

    played(story, patience_after, metrics)

    assert waiting == [2, 0]


def test_waiting_takes_at_most_a_part_of_the_commit_time() -> None:
    assert [patience_after(seconds) for seconds in (0.004, 0.04, 30)] == [0.001, 0.01, 0.02]


def answers_of(commit: Callable[[Sequence[Record]], list[Outcome]], *bodies: bytes) -> list[str]:
    """Return the answers to senders whose events share a transaction.

    The kind of their outcome, or of their error.
    """
    writer = Writer(
        commit,
        max_waiting=10,
        batch_records=1000,
        metrics=Metrics(),
        log=make_log(level="critical"),
    )

    async def send(body: bytes) -> str:
        try:
            (outcome,) = await writer.write([Record(body, EVENT.received_at)])
        except StrandlineError as error:
            return error.code
        return outcome.kind

    async def send_all() -> list[str]:
        offers = [asyncio.create_task(send(body)) for body in bodies]
        await asyncio.sleep(0)
        writer.start()
        return await asyncio.gather(*offers)

    try:
        return asyncio.run(asyncio.wait_for(send_all(), SECONDS))
    finally:
        writer.stop()


def refusing(error: Exception) -> Callable[[Sequence[Record]], list[Outcome]]:
    """A commit that fails where a record is poison."""

    def commit(records: Sequence[Record]) -> list[Outcome]:
        if any(record.value == b"poison" for record in records):
            raise error
        return [Outcome("stored", b"") for _ in records]

    return commit


def test_record_rejected_by_the_database_fails_only_its_sender() -> None:
    """A retry would not help: its sender gets an error, and the rest is stored."""
    refused = DataError("INSERT", {}, ValueError("a value out of range"))

    assert answers_of(refusing(refused), b"one", b"poison", b"two") == [
        "stored",
        "invalid_event",
        "stored",
    ]


@pytest.mark.parametrize(
    "error", [OperationalError("BEGIN", {}, ValueError("connection refused")), MemoryError()]
)
def test_database_failure_asks_every_sender_to_retry(error: Exception) -> None:
    assert answers_of(refusing(error), b"one", b"poison") == ["overload", "overload"]
