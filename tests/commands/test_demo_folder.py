"""A demo's folder and port are its own, and its advice fits the installation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from strandline.cli.commands.demo import on_free_port, start_collector
from strandline.demo import bank as demo_bank
from strandline.demo import report
from strandline.demo.bank import Bank, claimed_folder
from strandline.demo.processes import processes
from strandline.errors import DemoError
from strandline.store.sql.private_files import held_by_one_server


def test_second_demo_leaves_the_store_of_a_running_one(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with claimed_folder(folder):
        (folder / "strandline.db").write_text("events")
        with (
            pytest.raises(DemoError, match=r"another demo is running in .*--dir"),
            claimed_folder(folder),
        ):
            pass

        assert (folder / "strandline.db").read_text() == "events"


class Healthy(BaseHTTPRequestHandler):
    """Another program, which answers everything with 200."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()


@contextmanager
def other_demo() -> Iterator[int]:
    """Yield the port of a collector of another demo."""
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_second_demo_takes_another_port_and_never_another_demos_collector(tmp_path: Path) -> None:
    with other_demo() as port, processes(tmp_path / "logs") as started:
        bank = Bank(demo_bank.parts_root(), tmp_path, 1, port)

        assert on_free_port(bank).port != port
        with pytest.raises(DemoError, match="cannot listen"):
            start_collector(bank, None, started)


def test_restarted_collector_is_ready_when_it_listens_itself(tmp_path: Path) -> None:
    """The log of the first one says that it listened; the port is another program's since then."""
    with other_demo() as port, processes(tmp_path / "logs") as started:
        (tmp_path / "logs" / "collector.log").write_text("listening on an address\n")
        bank = Bank(demo_bank.parts_root(), tmp_path, 1, port)

        with pytest.raises(DemoError, match="cannot listen"):
            start_collector(bank, None, started)


def test_demo_leaves_a_store_that_a_collector_serves(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with claimed_folder(folder):
        (folder / "strandline.db").write_text("events")
    with (
        held_by_one_server(folder / "strandline.db"),
        pytest.raises(DemoError, match="a collector serves"),
        claimed_folder(folder),
    ):
        pass

    assert (folder / "strandline.db").read_text() == "events"


def test_next_demo_begins_with_an_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with claimed_folder(folder):
        (folder / "strandline.db").write_text("events")
        (folder / "lake" / "table").touch()
    with claimed_folder(folder):
        names = sorted(part.name for part in folder.rglob("*"))

    assert names == ["conf", "lake", "logs", "made-by-strandline-demo"]


def test_demo_keeps_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()

    with pytest.raises(DemoError, match="not a demo's"), claimed_folder(tmp_path):
        pass

    assert [part.name for part in tmp_path.iterdir()] == ["thesis.txt"]


def test_demo_of_a_wheel_gives_advice_that_fits_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = Bank(tmp_path, tmp_path / "demo", rounds=1, port=5000)
    monkeypatch.setattr(demo_bank, "find_spec", lambda name: None)
    report.tell_next(installed)

    assert "make" not in capsys.readouterr().out
    assert report.again(installed).endswith("strandline demo --keep")
    with pytest.raises(DemoError, match=r"pip install 'pyspark==4.1.4'.* demo --replay"):
        demo_bank.require_spark(tmp_path)


def test_demo_of_a_checkout_names_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Makefile").touch()
    checkout = Bank(tmp_path, tmp_path / "demo", rounds=1, port=5000)
    monkeypatch.setattr(demo_bank, "find_spec", lambda name: None)

    assert report.again(checkout) == "make demo KEEP=1"
    with pytest.raises(DemoError, match="run make demo"):
        demo_bank.require_spark(tmp_path)
