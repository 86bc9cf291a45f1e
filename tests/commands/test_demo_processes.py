"""The demo's processes end with it.

In good order, on an error, on a signal, and when the demo itself is killed.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.waiting import wait_until
from strandline.cli import main
from strandline.demo.processes import processes
from strandline.errors import DemoError

SLEEPER = "import subprocess, sys; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
# A suite that a shell started in the background ignores SIGINT, and so would its children.
DEMO = f"""
import os, pathlib, signal, sys, time
from strandline.demo.processes import processes
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = pathlib.Path(sys.argv[1])
with processes(folder) as started:
    started.start("child", [sys.executable, "-c", {SLEEPER!r}], folder, os.environ)
    time.sleep(600)
"""


def first_line(log: Path) -> str:
    """Return the first line of a process, once there is one."""
    return str(
        wait_until(
            lambda: log.exists() and "\n" in log.read_text() and log.read_text().splitlines()[0]
        )
    )


def lives(pid: int) -> bool:
    """Return true if a process is there and is no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_leaving_the_block_ends_child_processes(tmp_path: Path) -> None:
    with processes(tmp_path) as started:
        part = started.start("jobs", [sys.executable, "-c", SLEEPER], tmp_path, os.environ)
        grandchild = int(first_line(part.log))

        assert lives(grandchild)

    wait_until(lambda: not lives(grandchild))
    assert not part.running


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with processes(tmp_path, stop_seconds=0.2) as started:
        part = started.start("stubborn", [sys.executable, "-c", STUBBORN], tmp_path, os.environ)
        first_line(part.log)

    assert part.process.returncode == -signal.SIGKILL


def test_failed_process_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "print('no such table'); raise SystemExit(3)"]
    with processes(tmp_path) as started:
        started.start("credits", failing, tmp_path, {}).process.wait(30)
        with pytest.raises(DemoError) as told:
            started.check()

    assert (
        str(told.value)
        == f"credits ended with code 3; {tmp_path / 'credits.log'}:\n    no such table"
    )


def test_demo_that_fails_prints_the_lines_of_the_log_as_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [sys.executable, "-c", "print('an error\\n\\tat line 7'); raise SystemExit(3)"]

    def run(options: object, settings: object) -> int:
        with processes(tmp_path) as started:
            started.start("credits", failing, tmp_path, {}).process.wait(30)
            started.check()
        return 0

    monkeypatch.setattr("strandline.cli.commands.demo.run", run)

    assert main(["demo"], {}) == 1
    assert capsys.readouterr().err == (
        f"strandline: credits ended with code 3; {tmp_path / 'credits.log'}:\n"
        "    an error\n"
        "            at line 7\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_demo_ends_its_processes(tmp_path: Path, number: signal.Signals) -> None:
    demo = subprocess.Popen([sys.executable, "-c", DEMO, str(tmp_path)], stderr=subprocess.DEVNULL)
    grandchild = int(first_line(tmp_path / "child.log"))

    demo.send_signal(number)
    demo.wait(30)

    wait_until(lambda: not lives(grandchild))


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process that its parent was killed"
)
def test_killed_demo_ends_its_processes(tmp_path: Path) -> None:
    demo = subprocess.Popen([sys.executable, "-c", DEMO, str(tmp_path)])
    first_line(tmp_path / "child.log")
    child = int(wait_until(lambda: Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text()))

    demo.kill()
    demo.wait(30)

    wait_until(lambda: not lives(child))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # the grandchild, which nobody told
