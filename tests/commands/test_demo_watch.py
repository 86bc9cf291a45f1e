"""Kills while the demo runs.

A collector restarts, a driver does not, and only faults end the demo.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.demo.processes import DemoProcess, Processes, processes
from strandline.demo.watch import Watch
from strandline.errors import DemoError

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


def sleeper(started: Processes, name: str) -> DemoProcess:
    return started.start(name, SLEEPER, Path.cwd(), os.environ)


def kill(part: DemoProcess) -> None:
    part.process.kill()
    part.process.wait(30)


def test_a_killed_collector_is_started_again_once(started: Processes) -> None:
    watch = Watch(started, lambda: sleeper(started, "collector"), None)
    kill(sleeper(started, "collector"))

    watch.look()
    watch.look()

    assert [(part.name, part.running) for part in started.parts] == [
        ("collector", False),
        ("collector", True),
    ]


def test_killed_driver_does_not_end_a_kept_demo(
    started: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(started, lambda: sleeper(started, "collector"), 60)
    kill(sleeper(started, "debits"))

    watch.look()
    watch.look()

    assert (
        capsys.readouterr().err
        == "demo: debits was killed: LOST in 60 s, when its heartbeat timeout is over\n"
    )
    assert len(started.parts) == 1


def test_a_killed_driver_ends_a_demo_that_waits_for_it(started: Processes) -> None:
    watch = Watch(started, lambda: sleeper(started, "collector"), None)
    kill(sleeper(started, "debits"))

    with pytest.raises(DemoError, match="debits ended with code -9"):
        watch.look()


def test_failing_part_ends_the_demo(started: Processes) -> None:
    watch = Watch(started, lambda: sleeper(started, "collector"), 60)
    part = started.start(
        "collector", [sys.executable, "-c", "raise SystemExit(3)"], Path.cwd(), os.environ
    )
    part.process.wait(30)

    with pytest.raises(DemoError, match="collector ended with code 3"):
        watch.look()
