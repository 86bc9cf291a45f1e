"""The recorded bank is exported completely and matches the store."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.datahub import DataHubContract
from fixtures.contract_servers.marquez import MarquezContract
from fixtures.contract_servers.server import Fault
from fixtures.datahub_cli import checked
from fixtures.servers import serving
from strandline.cli import main
from strandline.demo.replay import records
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine, migrate
from transports.exporters.conftest import Export
from worlds.builders import NOON, dataset, event, rows, store

BANK = Path(__file__).resolve().parents[3] / "examples" / "recorded" / "bank.jsonl.gz"
RELATIONS = """
SELECT DISTINCT job.name, relation.direction, place.namespace, place.name
  FROM run_relations relation
  JOIN run_owners owned ON owned.run_id = relation.run_id
  JOIN jobs job ON job.id = owned.job_id
  JOIN datasets named ON named.id = relation.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
 WHERE job.noise <= job.data
"""


def bank(engine: Engine) -> None:
    batches = Batches(engine)
    received = list(records(BANK, datetime.now(UTC)))
    for start in range(0, len(received), 100):
        batches.write(received[start : start + 100])


def by_job(engine: Engine) -> dict[str, str]:
    """Return each job with its datasets as the store has them, in a page's form."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for job, direction, _, name in rows(engine, RELATIONS):
        found.setdefault(job, (set(), set()))[direction].add(name)
    return {
        job: f"{','.join(sorted(reads))} > {','.join(sorted(writes))}"
        for job, (reads, writes) in found.items()
    }


def test_marquez_and_datahub_show_the_edges_of_the_store(
    sqlite_engine: Engine, sqlite_url: str, marquez: MarquezContract, datahub: DataHubContract
) -> None:
    exports = Exporting(
        sqlite_engine,
        targets_of(Settings(marquez_url=marquez.url, datahub_url=datahub.url)),
        lambda why: None,
    )
    exports.register()
    bank(sqlite_engine)
    while exports.deliver(time.time()):
        pass
    exports.stop()
    said = by_job(sqlite_engine)
    page = {job: text for job, text in marquez.page().items() if text != " > "}
    edges = [
        one["dataJobInputOutput"]
        for urn, one in datahub.entities.items()
        if "dataJobInputOutput" in one
    ]
    written = {edge["destinationUrn"] for one in edges for edge in one["outputDatasetEdges"]}

    assert len(said) >= 4
    # Marquez shows a job's newest run. That of the report failed, and made no table.
    report = {"bank_report.lake.bank.report": "/demo/lake/bank/balance > "}
    assert page == said | report
    assert len(edges) == len(said)
    assert len(written) == len(
        {name for _, direction, _, name in rows(sqlite_engine, RELATIONS) if direction == 1}
    )
    assert rows(sqlite_engine, "SELECT * FROM export_parked") == []
    assert max(Counter(one for states in marquez.states.values() for one in {*states}).values()) > 0
    assert all(states.count("START") == 1 for states in marquez.states.values())


def test_own_marquez_api_can_be_a_target(sqlite_engine: Engine, tmp_path: Path) -> None:
    other = make_engine(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(other)
    with serving(other) as address:
        exports = Exporting(
            sqlite_engine, targets_of(Settings(marquez_url=address)), lambda why: None
        )
        exports.register()
        bank(sqlite_engine)
        while exports.deliver(time.time()):
            pass
        exports.stop()
        jobs = httpx.get(f"{address}/api/v1/jobs?limit=1000", timeout=60).json()["jobs"]

    assert by_job(other) == by_job(sqlite_engine)
    assert set(by_job(sqlite_engine)) <= {one["name"] for one in jobs}
    other.dispose()


@pytest.mark.slow
def test_datahub_cli_accepts_the_whole_bank(
    sqlite_engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    bank(sqlite_engine)
    file = tmp_path / "bank.json"
    code = main(
        ["export", "--to", "datahub", str(file), "--datahub-schemas", "true"],
        {"STRANDLINE_DATABASE_URL": sqlite_url},
    )
    written = file.read_text()
    broken = tmp_path / "broken.json"
    broken.write_text(written.replace('"upstreamType": "FIELD_SET"', '"upstreamType": 7'))

    assert code == 0
    assert written.count("FIELD_SET") > 0
    assert checked(file) == ""
    assert checked(broken) != ""  # it would notice
    for urn in set(re.findall(r'"(urn:li:[^"]+)"', written)):
        assert urn.count("(") == urn.count(")"), urn


EXPORTER = """
import sys
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings
from strandline.store.sql.engine import make_engine
exports = Exporting(make_engine(sys.argv[1]), targets_of(Settings(marquez_url=sys.argv[2])), print)
exports.deliver(float(sys.argv[3]))
"""


@pytest.mark.parametrize("killed_at", [3, 8])
def test_exporter_killed_after_sending_sends_again(
    database_url: str, engine: Engine, exporting: Export, marquez: MarquezContract, killed_at: int
) -> None:
    exports = exporting(marquez_url=marquez.url)
    hang, taken = threading.Event(), threading.Event()

    def fault(_: object) -> Fault | None:
        if len(marquez.asked) + 1 < killed_at or taken.is_set():
            return None
        taken.set()
        return Fault(200, hang=hang, taken=True)

    marquez.fault = fault
    sides: Any = {"inputs": [dataset("db.a")], "outputs": [dataset("db.b")]}
    now = NOON.timestamp()
    events = [event("COMPLETE", run, "etl", run, **sides) for run in range(1, 7)]
    store(engine, events, received_at=NOON)
    command = [sys.executable, "-c", EXPORTER, database_url, marquez.url, str(now)]
    with subprocess.Popen(command) as process:
        assert taken.wait(120)
        os.kill(process.pid, signal.SIGKILL)
    hang.set()
    exports.deliver(now + 120)

    sent = Counter(one.body["run"]["runId"] + one.body["eventType"] for one in marquez.asked)
    assert len(marquez.states) == 6
    assert sum(sent.values()) - len(sent) <= 2  # START and COMPLETE of one run
    assert marquez.page() == {"etl": "db.a > db.b"}
