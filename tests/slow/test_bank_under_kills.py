"""The bank under kills every few seconds, for a long time: `make soak`.

STRANDLINE_SOAK_MINUTES says how long (10), STRANDLINE_SOAK_SEED repeats a run. Printed at the end:
what was killed.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes, processes
from worlds.bank import contents, kill, metadata_of, rows_of, wait_for_bank

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).resolve().parents[2]
MINUTES = float(os.environ.get("STRANDLINE_SOAK_MINUTES", "10"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))


def test_kills_of_collector_and_drivers_do_not_change_the_result(
    tmp_path: Path, iceberg_jars: str
) -> None:
    bank = Bank(ROOT, tmp_path / "bank", demo_bank.FOREVER, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    with processes(bank.folder / "logs") as started:
        bootstrap = demo.start_broker(bank, started)
        assert bootstrap is not None
        demo_bank.write_conf(
            bank, iceberg_jars, demo_bank.kafka_transport(bootstrap), cores=1, lease_seconds=15
        )
        demo_lake.make_tables(bank)
        parts = {"collector": demo.start_collector(bank, bootstrap, started)}
        parts |= {
            part.name: part for part in demo.start_streams(bank, started, keep=True, together=False)
        }

        killed = kill_now_and_then(bank, bootstrap, parts, started)
        end_in_order(bank, parts)

        found, told = (
            contents(bank),
            {row["snapshot_id"] for row in rows_of(bank.url, "sink_snapshot_lineage")},
        )
        started.stop([parts["collector"]])
        again = Bank(ROOT, tmp_path / "again", 0, demo_bank.port_or_another(0))
        again.folder.mkdir()
        demo.start_collector(again, bootstrap, started)
        wait_for_bank(lambda: contents(again) == found)
    print(f"killed in {MINUTES:g} minutes (seed {SEED}): {dict(killed)}")
    real = metadata_of(bank.folder)
    assert {table: len(snapshots - told) for table, snapshots in real.items()} == dict.fromkeys(
        real, 0
    )


def kill_now_and_then(
    bank: Bank, bootstrap: str, parts: dict[str, DemoProcess], started: Processes
) -> Counter[str]:
    """Kill a random part every few seconds, and start it again a little later."""
    chance, killed = random.Random(SEED), Counter[str]()
    end = time.monotonic() + MINUTES * 60
    wait_for_bank(lambda: len(demo_lake.snapshots(bank)["balance"]) > 2)
    while time.monotonic() < end:
        name = chance.choice(sorted(parts))
        kill(parts[name])
        killed[name] += 1
        time.sleep(chance.uniform(0, 8))
        parts[name] = start(name, bank, bootstrap, started)
        time.sleep(chance.uniform(5, 25))
    return killed


def start(name: str, bank: Bank, bootstrap: str, started: Processes) -> DemoProcess:
    """Start a part again, as its supervisor would."""
    if name == "collector":
        return demo.start_collector(bank, bootstrap, started)
    return started.start(name, bank.job(name), bank.folder, bank.environ(keep=True))


def end_in_order(bank: Bank, parts: dict[str, DemoProcess]) -> None:
    """Let the streams catch up and end by themselves, then wait for the collector to know it."""
    before = len(demo_lake.snapshots(bank)["balance"])
    wait_for_bank(lambda: len(demo_lake.snapshots(bank)["balance"]) >= before + 2)
    bank.stop_file.touch()
    demo.let_end([parts[name] for name in demo_bank.STREAMS])
    wait_for_bank(lambda: rows_of(bank.url, "sink_job_lineage") == [])
