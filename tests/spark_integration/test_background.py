"""The emitter's threads give way, and nobody else's."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from strandline_spark.background import NICE, give_way


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_a_thread_that_gives_way_changes_its_own_priority_only() -> None:
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
