"""The word counts of FLIP-276 on real Spark with a real collector."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo.bank import Bank
from strandline.demo.processes import processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]


def test_strong_word_counts_agree_on_one_core(tmp_path: Path, iceberg_jars: str) -> None:
    bank = Bank(ROOT, tmp_path / "words", 0, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    demo_bank.write_conf(bank, iceberg_jars, demo_bank.http_transport(bank.url), cores=1)
    with (bank.folder / "conf" / "spark-defaults.conf").open("a") as conf:
        conf.write("spark.strandline.catalog.lake.consistency latest\n")
    environ = bank.environ(keep=False) | {
        "WORDS_DATABASE": "lake.words",
        "WORDS_CHECKPOINTS": str(bank.folder / "checkpoints"),
        "WORDS_RUNS": "3",
    }
    with processes(bank.folder / "logs") as started:
        demo.start_collector(bank, None, started)
        ran = subprocess.run(
            bank.job("query", "word_counts"), cwd=bank.folder, env=os.environ | environ, capture_output=True, text=True,
            timeout=500, check=False,
        )  # fmt: skip
    runs = re.findall(
        r"^run \d: consistent_sql: (\d+) of 5 .* strong: (\d+) of 5 ", ran.stdout, re.MULTILINE
    )

    assert ran.returncode == 0, ran.stderr[-3000:] + ran.stdout[-2000:]
    assert runs == [("0", "0")] * 3
