"""The demo's second act ends early only where the streams stand still."""

import time
from pathlib import Path
from typing import cast

import pytest

from strandline.demo import aligned
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, processes
from strandline.demo.watch import Watch
from strandline.errors import DemoError

SLOW = aligned.SECONDS - 1


class Typist:
    """Writes one line of the table a look, and lets so many seconds pass."""

    def __init__(self, part: DemoProcess, lines: int, seconds: float) -> None:
        self.part, self.lines, self.seconds, self.now = part, lines, seconds, 0.0

    def look(self) -> None:
        stdin = self.part.process.stdin
        assert stdin is not None
        self.now += self.seconds
        if self.lines:
            written = self.part.output().count("\n")
            stdin.write(b"| a row |\n")
            stdin.flush()
            while self.part.output().count("\n") == written:
                time.sleep(0.01)
            self.lines -= 1
        elif self.seconds == SLOW:
            stdin.close()
            self.part.process.wait()


@pytest.mark.parametrize(("lines", "seconds", "stuck"), [(5, SLOW, False), (0, 400, True)])
def test_slow_machine_has_time_while_rows_come(
    lines: int,
    seconds: float,
    stuck: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(aligned, "tell", lambda bank: None)
    bank = Bank(tmp_path, tmp_path, rounds=0, port=0)
    with processes(tmp_path / "logs") as started:
        part = started.start("aligned", ["cat"], tmp_path, {"PATH": "/usr/bin:/bin"})
        typist = Typist(part, lines, seconds)
        monkeypatch.setattr(time, "monotonic", lambda: typist.now)
        act = aligned.SecondAct(bank, part, None)
        if stuck:
            with pytest.raises(DemoError, match="made nothing new for 240 s"):
                aligned.show(act, cast(Watch, typist))
        else:
            aligned.show(act, cast(Watch, typist))
        monkeypatch.undo()

    assert capsys.readouterr().out.count("| a row |") == lines
