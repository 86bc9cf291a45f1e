"""Sources of `strandline replay`: files, pipes and standard input, plain or compressed."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.kafka import ROOT
from strandline.cli import main
from worlds.sample_events import as_bytes, run_event

EVENTS = b"\n".join([as_bytes(run_event("1")), as_bytes(run_event("2"))])
STORED = {"stored": 2, "duplicate": 0, "dead": 0, "unread": 0}
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(EVENTS, marks=pytest.mark.slow),
        pytest.param(gzip.compress(EVENTS), marks=pytest.mark.slow),
        pytest.param(MARK + EVENTS, marks=pytest.mark.slow),
        gzip.compress(MARK + EVENTS),
    ],
)
def test_standard_input_may_be_compressed(environ: dict[str, str], content: bytes) -> None:
    command = [sys.executable, "-m", "strandline", "replay", "-", "--json"]
    environ = os.environ | environ | {"PYTHONPATH": str(ROOT / "collector")}

    done = subprocess.run(
        command, env=environ, input=content, capture_output=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == STORED


@pytest.mark.parametrize("content", [EVENTS, gzip.compress(EVENTS)])
def test_a_file_may_be_a_pipe(
    environ: dict[str, str], content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell's <(zcat events.gz) is a pipe."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    try:
        code = main(["replay", f"/dev/fd/{reading}", "--json"], environ)
    finally:
        os.close(reading)

    assert (code, json.loads(capsys.readouterr().out)) == (0, STORED)


def test_byte_order_mark_is_not_part_of_an_event(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(MARK + EVENTS + b"\n" + MARK + as_bytes(run_event("3")))

    code = main(["replay", str(file), "--json"], environ)

    assert (code, json.loads(capsys.readouterr().out)) == (
        0,
        {"stored": 3, "duplicate": 0, "dead": 0, "unread": 0},
    )


@pytest.mark.parametrize("content", [b"", b"\n", b"\x1f"])
def test_tiny_file_is_read_to_its_end(
    environ: dict[str, str], tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(content)

    main(["replay", str(file), "--json"], environ)

    assert json.loads(capsys.readouterr().out) == {
        "stored": 0,
        "duplicate": 0,
        "dead": len(content.strip()),
        "unread": 0,
    }
