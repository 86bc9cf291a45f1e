"""The outbox never blocks, is bounded, and loses no vital event."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.emitter.backend import LIMIT, Backend, box
from fixtures.emitter.builders import message
from fixtures.emitter.spools import kept
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transport import Delivery, Message
from strandline_spark.delivery.transports.composite import CompositeTransport


def test_each_event_is_sent(tmp_path: Path) -> None:
    backend = Backend()
    outbox = box(backend, tmp_path)

    outbox.put(message("start"))
    outbox.put(message("end", vital=True))

    assert outbox.flush(30)
    assert backend.got == ["run:default/start", "run:default/end"]
    outbox.close(5)
    assert list(tmp_path.iterdir()) == []


def test_vital_events_are_spooled_during_an_outage_and_sent_after_it(tmp_path: Path) -> None:
    backend = Backend()
    backend.away = True
    outbox = box(backend, tmp_path)

    outbox.put(message("start"))
    for number in range(5):
        outbox.put(message(f"batch{number}", vital=True))
    backend.away = False

    assert backend.wait_for("start", "batch0", "batch1", "batch2", "batch3", "batch4")
    assert outbox.losses.dropped == 0
    outbox.close(5)


def test_other_composite_parts_get_events_while_one_is_unreachable(tmp_path: Path) -> None:
    there, away = Backend(), Backend()
    away.away = True
    outbox = box(CompositeTransport({"away": away, "there": there}, first_pause=0.01), tmp_path)
    names = [f"{kind}{number}" for number in range(3) for kind in ("start", "batch")]

    for name in names:
        outbox.put(message(name, vital=name.startswith("batch")))
        assert there.wait_for(name)
    outbox.put(replace(message("alive"), heartbeat=True))
    assert there.wait_for("alive")
    assert away.got == []

    away.away = False
    assert away.wait_for(*names)
    outbox.close(5)
    assert there.got == [f"run:default/{name}" for name in [*names, "alive"]]
    assert outbox.losses.dropped == 0
    assert list(tmp_path.iterdir()) == []


def test_bounded_memory_drops_only_nonvital_events(tmp_path: Path) -> None:
    backend = Backend()
    backend.hang = threading.Event()
    outbox = box(backend, tmp_path, capacity=10)
    outbox.put(message("first"))
    assert backend.entered.wait(30)

    for number in range(10_000):
        outbox.put(message(f"start{number}"))
    for number in range(100):
        outbox.put(message(f"batch{number}", vital=True))

    assert len(outbox.waiting()) == 10
    assert outbox.losses.dropped == 10_000
    backend.hang.set()
    assert backend.wait_for(*(f"batch{number}" for number in range(100)))
    outbox.close(5)


def test_oldest_nonvital_events_are_dropped_first(tmp_path: Path) -> None:
    backend = Backend()
    backend.hang = threading.Event()
    outbox = box(backend, tmp_path, capacity=3)
    outbox.put(message("first"))
    assert backend.entered.wait(30)

    for number in range(5):
        outbox.put(message(f"start{number}"))

    assert [one.key for one in outbox.waiting()] == [
        f"run:default/start{number}" for number in (2, 3, 4)
    ]
    backend.hang.set()
    assert backend.wait_for("start4")
    outbox.close(5)
    assert backend.got == [
        "run:default/first",
        "run:default/start2",
        "run:default/start3",
        "run:default/start4",
    ]


class Hanging(Spool):
    """A spool on a network disk that does not answer until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, LIMIT)
        self.entered, self.answers = threading.Event(), threading.Event()

    def append(self, messages: Sequence[Message], *, anew: bool = False) -> int:
        """Hangs."""
        self.entered.set()
        self.answers.wait(60)
        return super().append(messages, anew=anew)


def test_hanging_disk_delays_neither_queueing_nor_sending(tmp_path: Path) -> None:
    backend, spool = Backend(), Hanging(tmp_path)
    backend.hang = threading.Event()
    outbox = Outbox(lambda: backend, spool, capacity=2, first_pause=0.01)
    outbox.put(message("first"))
    assert backend.entered.wait(30)
    for number in range(4):  # two of them find no room, and are on their way to the disk
        outbox.put(message(f"batch{number}", vital=True))
    assert spool.entered.wait(30)

    backend.hang.set()

    assert backend.wait_for("first", "batch2", "batch3")
    outbox.put(message("later"))
    assert backend.wait_for("later")
    spool.answers.set()
    assert backend.wait_for("batch0", "batch1")
    outbox.close(5)
    assert outbox.losses.dropped == 0


def test_outbox_closes_despite_a_hanging_disk(tmp_path: Path) -> None:
    backend, spool = Backend(), Hanging(tmp_path)
    backend.away = True
    outbox = Outbox(lambda: backend, spool, first_pause=0.01)
    outbox.put(message("batch0", vital=True))
    assert spool.entered.wait(30)
    ended = threading.Thread(target=outbox.close, args=(0.2,))

    ended.start()
    ended.join(30)

    assert not ended.is_alive()
    spool.answers.set()


def test_queued_bytes_are_bounded(tmp_path: Path) -> None:
    backend = Backend()
    backend.hang = threading.Event()
    outbox = Outbox(
        lambda: backend, Spool(tmp_path, LIMIT), capacity_bytes=10_000, first_pause=0.01
    )
    outbox.put(message("first"))
    assert backend.entered.wait(30)

    for number in range(100):
        outbox.put(message(f"start{number}", size=1000))

    assert len(outbox.waiting()) == 9
    backend.hang.set()
    outbox.close(5)


def test_rejected_event_is_counted_and_blocks_nothing(tmp_path: Path) -> None:
    backend = Backend()
    backend.refuses = {"run:default/bad"}
    outbox = box(backend, tmp_path)

    outbox.put(message("bad", vital=True))
    outbox.put(message("good", vital=True))

    assert backend.wait_for("good")
    assert outbox.flush(30)
    assert outbox.losses.refused == 1
    outbox.close(5)


def test_events_after_close_are_spooled(tmp_path: Path) -> None:
    outbox = box(Backend(), tmp_path)
    outbox.close(5)

    outbox.put(message("late", vital=True))

    assert Spool(tmp_path, LIMIT).oldest() is not None
    assert [m.key for m in kept(tmp_path)] == ["run:default/late"]


def test_end_event_is_spooled_if_the_backend_hangs(tmp_path: Path) -> None:
    backend = Backend()
    backend.hang = threading.Event()
    outbox = box(backend, tmp_path)
    outbox.put(message("end", vital=True))
    assert backend.entered.wait(30)

    outbox.close(0.1)

    assert [m.key for m in kept(tmp_path)] == ["run:default/end"]
    backend.hang.set()


def test_close_does_not_wait_for_a_failed_backend_that_hangs(tmp_path: Path) -> None:
    class BlackHole(Backend):
        """Says once that it is away, and then nothing."""

        def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
            if self.away:
                self.entered.set()
                released.wait(30)
                over.set()
            self.away = True
            return Delivery(unsent=tuple(messages), reason="away")

    released, over, backend = threading.Event(), threading.Event(), BlackHole()
    outbox = box(backend, tmp_path)
    outbox.put(message("batch0", vital=True))
    assert backend.entered.wait(30)

    outbox.close(3600)

    assert not over.is_set()
    assert [m.key for m in kept(tmp_path)] == ["run:default/batch0"]
    released.set()


def test_unwritable_disk_loses_no_event_while_memory_lasts(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("no folder")
    backend = Backend()
    backend.away = True
    outbox = box(backend, folder)
    outbox.put(message("batch0", vital=True))
    assert backend.entered.wait(30)
    backend.away = False

    assert backend.wait_for("batch0")
    assert outbox.losses.dropped == 0
    outbox.close(5)


def test_long_outage_stays_within_the_disk_limit(tmp_path: Path) -> None:
    backend = Backend()
    backend.away = True
    outbox = Outbox(lambda: backend, Spool(tmp_path, 3000), first_pause=0.01)
    for number in range(9):  # each attempt takes up the file that the events so far are in
        backend.entered.clear()
        outbox.put(message(f"batch{number}", vital=True, size=900))
        assert backend.entered.wait(30)
    outbox.close(30)

    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 3000
    assert (len(kept(tmp_path)), outbox.losses.dropped) == (3, 6)


def test_micro_batches_after_a_gap_do_not_count_as_delivered(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("no folder")
    backend = Backend()
    safe: list[Message] = []
    backend.hang = threading.Event()
    outbox = Outbox(
        lambda: backend, Spool(folder, LIMIT), capacity=2, safe=safe.append, first_pause=0.01
    )
    outbox.put(message("first"))
    assert backend.entered.wait(30)
    for number in range(4):  # the first two find no room
        outbox.put(replace(message(f"batch{number}", vital=True), micro_batch=("query", number)))
    outbox.put(replace(message("other", vital=True), micro_batch=("another query", 0)))
    backend.hang.set()

    assert backend.wait_for("batch3", "other")
    outbox.close(5)
    assert outbox.losses.dropped == 3
    assert [m.micro_batch for m in safe if m.micro_batch is not None] == [("another query", 0)]


def test_unwritable_disk_loses_events_and_counts_them(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("no folder")
    backend = Backend()
    backend.away = True
    outbox = box(backend, folder)
    outbox.put(message("end", vital=True))
    outbox.close(0.2)

    assert outbox.losses.dropped == 1


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"garbage\n", id="garbage"),
        pytest.param(b'00000000 ["k",true,null]\t{}\n', id="wrong checksum"),
        pytest.param(b"\xff" * 100 + b"\n", id="bytes"),
        pytest.param(b'1234abcd ["run:default/torn",tr', id="torn at the end"),
    ],
)
def test_damaged_line_is_skipped_and_counted(tmp_path: Path, damage: bytes) -> None:
    spool = Spool(tmp_path, LIMIT)
    assert spool.append([message("before", vital=True), message("after", vital=True)]) == 2
    spool.close()
    file = next(tmp_path.glob("*.spool"))
    before, after = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(before + after + damage if b"torn" in damage else before + damage + after)

    backend = Backend()
    outbox = box(backend, tmp_path)

    assert backend.wait_for("before", "after")
    outbox.close(5)
    assert outbox.losses.damaged == 1
    assert backend.got == ["run:default/before", "run:default/after"]
