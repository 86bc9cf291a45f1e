"""What a stream of records leaves in an archive: what a collector would have stored, each event once.

The records come from files: the registry has no Kafka source that runs on the Spark of these tests. All behind the
source is what `strandline archive --from-topic` runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset as arrow
from pyarrow import parquet

from scenarios.bank import bank
from strandline.cli import main
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.topic_archive import started

pytestmark = pytest.mark.spark
SECRET = "hunter2hunter2"


def arrive(topic: Path, name: str, values: Sequence[bytes], received_at: int) -> None:
    """Records of one append time."""
    topic.mkdir(exist_ok=True)
    columns = {"value": values, "received_at": [received_at + n for n in range(len(values))]}
    parquet.write_table(pa.table(columns), topic / f"{name}.parquet")


def archive(spark: Any, home: Path) -> None:
    """Write what has arrived, and stop."""
    records = spark.readStream.schema("value binary, received_at bigint").parquet(str(home / "topic"))
    query = started(spark, records, str(home / "archive"), str(home / "checkpoint"), available_now=True)
    query.awaitTermination()


def test_the_topic_is_archived_once_and_without_secrets(lake: Any, tmp_path: Path) -> None:
    first = bank(2)
    second = bank(4)[len(first) :]
    secret = json.loads(second[0].value)
    secret["run"]["facets"]["custom"] = {"_producer": "test://x", "_schemaURL": "test://x", "password": SECRET}
    hidden = json.dumps(secret).encode()
    clear = [one.value for one in (*first, *second)]

    arrive(tmp_path / "topic", "1", [*(one.value for one in first), b"no event"], micros_of(first[0].received_at))
    archive(lake, tmp_path)
    arrive(tmp_path / "topic", "2", [*(one.value for one in second), hidden], micros_of(second[0].received_at))
    archive(lake, tmp_path)  # goes on where the first one stopped

    folder = arrow.dataset(tmp_path / "archive", partitioning="hive", ignore_prefixes=["_", "."])
    written = folder.to_table().to_pylist()
    assert sorted(row["hash"] for row in written) == sorted(map(content_hash, [*clear, hidden]))
    assert {row["body"] for row in written} > set(clear)
    assert not any(SECRET.encode() in row["body"] for row in written)
    assert any(b'"password"' in row["body"] for row in written)


def test_what_it_needs_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["archive", "--from-topic", "--to", str(tmp_path)], {})

    assert code == 2
    assert "kafka_bootstrap_servers is not set" in capsys.readouterr().err
