"""The recorded demo loads without Java, ends now, and shows the features of the page."""

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from fixtures.servers import SETTINGS, serving
from strandline.cli import main
from strandline.cli.commands.demo import recorded_settings
from strandline.core.versions.strong_weak import held_by, strong
from strandline.demo import report
from strandline.demo.bank import Bank
from strandline.demo.replay import RECORDING, load, records
from strandline.runtime.follower import Follower
from strandline.store.sql.engine import make_engine

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
TABLES = [
    ("file", f"/demo/lake/bank/{name}") for name in ("transfers", "credits", "debits", "balance")
]


def test_every_time_in_the_recording_is_shifted_to_now() -> None:
    taken = list(records(ROOT / RECORDING, NOW))

    assert taken[-1].received_at == NOW
    assert [one for one in taken if re.search(rb'"2026-', one.value)] == []


def test_recording_contains_no_paths_of_its_machine() -> None:
    text = b"\n".join(one.value for one in records(ROOT / RECORDING, NOW))

    assert re.findall(rb"/(?:root|home|Users|tmp|work)/[^\"]*", text) == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    """Return a demo whose store the recording was loaded into."""
    demo = Bank(ROOT, tmp_path_factory.mktemp("recorded"), rounds=0, port=0)
    assert load(ROOT / RECORDING, demo.database) == 254
    return demo


@pytest.fixture(scope="module")
def follower(demo: Bank) -> Follower:
    """Return the model of versions of the store that the recording was loaded into."""
    return Follower(make_engine(demo.database))


def test_the_tables_agree_at_the_last_barrier_of_the_stopped_job(follower: Follower) -> None:
    with follower.model() as model:
        barriers = {reading.barrier for reading in strong(model, TABLES)}
        holders = [(holder.name, holder.state) for holder in held_by(model, TABLES)]

    assert (barriers, holders) == ({40}, [("bank_debits.debits", "STOPPED")])


def test_each_question_that_it_suggests_has_an_answer(
    demo: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    export, *suggested = [
        shlex.split(line) for line in report.questions(demo, "lake.bank").splitlines()
    ]
    assert export == ["export", f"STRANDLINE_URL={demo.url}"]
    told = {}
    for _, *words in suggested:
        assert main([*words, "--database-url", demo.database], {}) == 0
        told[words[0]] = capsys.readouterr().out

    assert "What lake.bank.balance is made from:" in told["lineage"]
    assert "barrier 40 of group bank" in told["versions"]


def test_collector_says_that_its_demo_is_recorded(demo: Bank) -> None:
    engine = make_engine(demo.database)
    with serving(engine, recorded_settings(SETTINGS, demo)) as address:
        labelled = httpx.get(f"{address}/healthz").json()
    with serving(engine) as address:
        plain = httpx.get(f"{address}/healthz").json()
    engine.dispose()

    assert labelled["label"] == "Recorded demo"
    assert "label" not in plain


def test_bank_is_one_connected_graph_with_one_failed_run(
    demo: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("transfers", "credits", "debits", "balance", "report")
    assert (
        main(["lineage", "lake.bank.transfers", "--json", "--database-url", demo.database], {}) == 0
    )
    nodes = [node["id"] for node in json.loads(capsys.readouterr().out)["nodes"]]
    command = ["runs", "--failed", "--json", "--database-url", demo.database]
    assert main(command, {}) == 0
    failed = json.loads(capsys.readouterr().out)["items"]

    tables = sorted(node for node in nodes if node.startswith("dataset:"))
    assert tables == sorted(f"dataset:file:/demo/lake/bank/{name}" for name in names)
    assert sorted(run["job"]["name"] for run in failed) == [
        "bank_report",
        "bank_report.lake.bank.report",
    ]
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in failed[0]["error"]


def test_delay_begins_at_the_base_table(demo: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["late", "lake.bank.balance", "--database-url", demo.database], {}) == 0

    parts = [" ".join(line.split()[2:]) for line in capsys.readouterr().out.splitlines()[3:]]
    assert parts == [
        "wait bank_ingest.ingest -> lake.bank.transfers",
        "work bank_ingest.ingest -> lake.bank.transfers",
        "wait bank_debits.debits -> lake.bank.debits <- the largest part",
        "work bank_debits.debits -> lake.bank.debits",
        "wait bank_balance.balance -> lake.bank.balance",
        "work bank_balance.balance -> lake.bank.balance",
    ]
