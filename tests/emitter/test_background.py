"""The emitter's threads, and only these, yield to the job."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from strandline_spark.priority import NICE, give_way, let_pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_background_thread_lowers_only_its_own_priority() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    found = []

    def in_background() -> None:
        give_way()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=in_background)
    thread.start()
    thread.join()

    assert found == [min(19, before + NICE)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


@pytest.mark.parametrize(
    ("at", "waits"),
    [(1_000_000, 0.02), (0, 0), (2_000_000, 0.03)],
    ids=["now", "long ago", "later"],
)
def test_a_statement_that_has_just_ended_goes_first(
    monkeypatch: pytest.MonkeyPatch, at: float, waits: float
) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    monkeypatch.setattr(time, "time", lambda: 1000.01)

    let_pass(at)

    assert naps == [pytest.approx(waits)]
