"""Event files on disk are bounded, locked, and contain whole lines only."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path

import pytest

from fixtures.emitter.builders import message
from fixtures.emitter.spools import files_of, kept
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transport import Message

LIMIT = 10_000_000


def test_spool_of_a_running_driver_is_left_alone(tmp_path: Path) -> None:
    living, other = Spool(tmp_path, LIMIT), Spool(tmp_path, LIMIT)
    living.append([message("mine", vital=True)])

    assert other.oldest() is None
    living.close()
    assert other.oldest() is not None


def test_file_system_without_locks_is_left_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    spool, before = Spool(tmp_path, LIMIT), os.dup(0)
    os.close(before)

    assert [spool.append(some) for some in ([], [message("end", vital=True)])] == [0, 0]

    after = os.dup(0)
    os.close(after)
    assert after == before
    assert list(tmp_path.iterdir()) == []


def test_spool_is_locked_before_it_becomes_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, lock = [], fcntl.flock

    def looked_at(descriptor: int, how: int) -> None:
        seen.append(list(tmp_path.glob("*.spool")))
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", looked_at)

    assert Spool(tmp_path, LIMIT).append([message("end", vital=True)]) == 1
    assert seen == [[]]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_briefly_full_disk_damages_no_other_event(tmp_path: Path) -> None:
    spool = Spool(tmp_path, LIMIT)
    assert spool.append([message("before", vital=True, size=1000)]) == 1
    with files_of(1500):
        assert spool.append([message("torn", vital=True, size=1000)]) == 0

    assert spool.append([message("after", vital=True, size=1000)]) == 1
    assert [m.key for m in kept(tmp_path)] == ["run:default/before", "run:default/after"]


def test_all_files_of_a_driver_count_towards_its_limit(tmp_path: Path) -> None:
    spool, other = Spool(tmp_path, 3000), Spool(tmp_path, 3000)
    some = [message(f"batch{n}", vital=True, size=900) for n in range(10)]
    assert spool.append(some) == 3

    replayed = spool.oldest()
    assert replayed is not None
    assert spool.append(some) == 0
    replayed.release()  # nothing of it went
    assert spool.append(some) == 0
    assert len(kept(tmp_path)) == 3
    found = other.oldest()
    assert found is not None
    found.delete()  # all of it went, through another driver

    assert spool.append(some) == 3
    spool.close()
    assert spool.append(some) == 0
    assert other.append(some) == 3
    assert spool.append(some, anew=True) == 10


def test_message_survives_a_round_trip_to_disk(tmp_path: Path) -> None:
    sent = [
        Message(
            "run:a/b\n\tc", b'{"x":"\xc3\xa9"}', True, ("33333333-3333-4333-8333-333333333333", 7)
        )
    ]
    Spool(tmp_path, LIMIT).append(sent)

    assert kept(tmp_path) == sent


def test_unconfirmed_write_does_not_count_as_spooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, LIMIT)
    assert spool.append([message("before", vital=True)]) == 1

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)

    assert spool.append([message("batch0", vital=True), message("batch1", vital=True)]) == 0
