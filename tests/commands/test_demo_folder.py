"""A demo's folder belongs to one demo at a time, and its advice fits the installation."""

from pathlib import Path

import pytest

from strandline.demo import bank as demo_bank
from strandline.demo import report
from strandline.demo.bank import Bank, claimed_folder
from strandline.demo.processes import DemoError
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


def test_demo_keeps_a_folder_of_somebody_else(tmp_path: Path) -> None:
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
