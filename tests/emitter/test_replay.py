"""Undeliverable or unreadable events block nothing, and files are deleted only once sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.emitter.backend import LIMIT, Backend, box
from fixtures.emitter.builders import message
from fixtures.emitter.spools import kept
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool, SpoolFile
from strandline_spark.delivery.transport import Delivery, Message, Transport, TransportConfError
from strandline_spark.delivery.transports.composite import CompositeTransport


def test_event_that_always_fails_blocks_no_driver(tmp_path: Path) -> None:
    backend = Backend()
    backend.never = {"run:default/bad"}
    first = box(backend, tmp_path)
    first.put(message("bad", vital=True))
    for number in range(5):
        first.put(message(f"batch{number}", vital=True))
        assert backend.wait_for(f"batch{number}")
    first.close(5)

    second = box(backend, tmp_path)
    for number in range(5, 10):
        second.put(message(f"batch{number}", vital=True))
        assert backend.wait_for(f"batch{number}")
    second.close(5)

    assert [m.key for m in kept(tmp_path)] == ["run:default/bad"]


def test_backend_that_takes_a_few_at_a_time_counts_as_reachable(tmp_path: Path) -> None:
    backend = Backend()
    backend.hang, backend.most = threading.Event(), 10
    outbox = Outbox(lambda: backend, Spool(tmp_path, LIMIT), first_pause=3600)
    names = [f"batch{number}" for number in range(95)]
    for name in names:
        outbox.put(message(name, vital=True))
    backend.hang.set()

    assert backend.wait_for(*names)
    outbox.close(5)
    assert list(tmp_path.iterdir()) == []


def test_new_events_do_not_wait_for_the_whole_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path, LIMIT)
    old = [f"old{number}" for number in range(1000)]
    spool.append([message(name, vital=True) for name in old])
    spool.close()
    backend = Backend()
    backend.hang = threading.Event()
    outbox = box(backend, tmp_path)
    assert backend.entered.wait(30)
    outbox.put(message("fresh", vital=True))
    backend.hang.set()

    assert backend.wait_for("fresh", *old)
    assert backend.got.index("run:default/fresh") < 300
    outbox.close(5)
    assert list(tmp_path.iterdir()) == []


def test_spool_file_that_cannot_be_sent_goes_last(tmp_path: Path) -> None:
    left(tmp_path, "bad")
    left(tmp_path, "good", "better")
    left(tmp_path, "bad too")
    backend = Backend()
    backend.never = {"run:default/bad", "run:default/bad too"}
    outbox = box(backend, tmp_path)

    assert backend.wait_for("good", "better")
    outbox.close(5)
    assert {m.key for m in kept(tmp_path)} == backend.never


def test_partly_sent_spool_file_blocks_no_other_at_the_disk_limit(tmp_path: Path) -> None:
    backend = Backend()
    backend.never = {"run:default/bad", "run:default/bad too"}
    left(tmp_path, "bad", "good")
    left(tmp_path, "bad too", "better")
    outbox = Outbox(lambda: backend, Spool(tmp_path, 10), first_pause=0.01)

    assert backend.wait_for("good", "better")
    outbox.close(5)
    assert {m.key for m in kept(tmp_path)} == backend.never


def test_unanswered_event_does_not_block_the_others_forever(tmp_path: Path) -> None:
    class Stops(Backend):
        """Answers nothing more once it has seen a certain event, as over one connection."""

        def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
            at = next(
                (n for n, m in enumerate(messages) if m.key == "run:default/large"), len(messages)
            )
            super().send(messages[:at], seconds)
            return Delivery(unsent=tuple(messages[at:]), reason="out of time")

    left(tmp_path, "large", *(f"old{number}" for number in range(20)))
    backend = Stops()
    outbox = box(backend, tmp_path)
    outbox.put(message("large"))
    for number in range(20):
        outbox.put(message(f"new{number}"))

    assert backend.wait_for(*(f"{age}{number}" for age in ("old", "new") for number in range(20)))
    outbox.close(5)


def test_reachable_composite_part_gets_the_whole_spool(tmp_path: Path) -> None:
    names = [f"old{number}" for number in range(250)]
    left(tmp_path, *names)
    there, away = Backend(), Backend()
    away.away = True
    outbox = box(CompositeTransport({"away": away, "there": there}, first_pause=0.01), tmp_path)

    assert there.wait_for(*names)
    away.away = False
    assert away.wait_for(*names)
    outbox.close(5)


def test_spool_file_with_a_read_error_is_not_treated_as_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(tmp_path, "batch0", "batch1")
    reading, failed = SpoolFile.messages, threading.Event()

    def messages(file: SpoolFile) -> Iterator[Message | None]:
        if not failed.is_set():
            failed.set()
            raise OSError(24, "Too many open files")
        yield from reading(file)

    monkeypatch.setattr(SpoolFile, "messages", messages)
    backend = Backend()
    outbox = box(backend, tmp_path)

    assert backend.wait_for("batch0", "batch1")
    outbox.close(5)
    assert kept(tmp_path) == []


def test_events_under_way_when_a_transport_broke_are_sent_again(tmp_path: Path) -> None:
    class Breaks(Backend):
        """Raises, once."""

        def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
            if not self.entered.is_set():
                self.entered.set()
                raise ValueError("a fault of ours")
            return super().send(messages, seconds)

    safe: list[Message] = []
    backend = Breaks()
    outbox = Outbox(lambda: backend, Spool(tmp_path, LIMIT), first_pause=0.01, safe=safe.append)
    for number in range(2):
        outbox.put(replace(message(f"batch{number}", vital=True), micro_batch=("query", number)))

    assert backend.wait_for("batch0", "batch1")
    outbox.close(5)
    assert {m.micro_batch for m in safe} == {("query", 0), ("query", 1)}


def test_unusable_transport_is_retried_after_a_pause(tmp_path: Path) -> None:
    tried: list[int] = []

    def impossible() -> Transport:
        tried.append(len(tried))
        raise TransportConfError("transport.type: no such thing")

    outbox = Outbox(impossible, Spool(tmp_path, LIMIT), first_pause=3600)
    outbox.put(message("end", vital=True))
    outbox.close(5)

    assert tried in ([], [0])
    assert [m.key for m in kept(tmp_path)] == ["run:default/end"]


def test_damaged_lines_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "1-a.spool").write_bytes(b"garbage\n" * 250)
    left(tmp_path, "good")
    backend = Backend()
    outbox = box(backend, tmp_path)

    assert backend.wait_for("good")
    outbox.close(5)
    assert outbox.losses.damaged == 250


def left(folder: Path, *names: str) -> None:
    """A file of events that an earlier driver left."""
    spool = Spool(folder, LIMIT)
    assert spool.append([message(name, vital=True) for name in names]) == len(names)
    spool.close()
