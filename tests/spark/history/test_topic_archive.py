"""An archive of a topic contains each event once, as a collector would store it.

Records of a real topic, while its broker and the archiver are killed; where the transport does not
matter, from files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaProducer
from pyarrow import dataset as arrow
from pyarrow import parquet

from deploy import jars
from deploy import kafka as brokers
from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.waiting import wait_until
from strandline.cli import main
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.errors import StrandlineError
from strandline.history.topic_archive import await_end, started
from worlds.scenarios.bank import bank

pytestmark = pytest.mark.spark
SECRET = "hunter2hunter2"
SECONDS = 240
COMMAND = "import sys; from strandline.cli import main; sys.exit(main(sys.argv[1:], {}))"


@contextmanager
def broker(folder: Path) -> Iterator[list[brokers.Broker]]:
    """A broker of the test's own in a list: the last one in it is stopped at the end."""
    try:
        running = [brokers.start(folder)]
    except jars.JarsError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        running[-1].kill()


def send(servers: str, values: Sequence[bytes]) -> None:
    """Records that the broker has acknowledged."""
    producer = KafkaProducer(bootstrap_servers=servers)
    for value in values:
        producer.send("lineage", value).get(SECONDS)
    producer.close()


def archiver_of(folder: Path, servers: str) -> SparkProgram:
    """`strandline archive --from-topic`, watched by the emitter."""
    conf = emitting(folder) | {"spark.jars": jars.comma_list(["spark-kafka-4.1"])}
    arguments = [
        "archive",
        "--from-topic",
        "--to",
        str(folder / "archive"),
        "--checkpoint",
        str(folder / "checkpoint"),
    ]
    arguments += [
        "--kafka-bootstrap-servers",
        servers,
        "--kafka-topic",
        "lineage",
        "--master",
        "local[2]",
    ]
    return SparkProgram(folder, COMMAND, conf, arguments=tuple(arguments))


def archived(folder: Path) -> list[bytes]:
    """The hashes in all files that Spark has committed."""
    lines = [
        line
        for log in (folder / "archive" / "_spark_metadata").glob("[0-9]*")
        for line in log.read_text().split("\n")[1:]
    ]
    files = sorted({json.loads(line)["path"].removeprefix("file://") for line in lines})
    return [
        found
        for file in files
        for found in parquet.ParquetFile(file).read(["hash"])["hash"].to_pylist()
    ]


def arrive(topic: Path, name: str, values: Sequence[bytes], received_at: int) -> None:
    """Records of one append time."""
    topic.mkdir(exist_ok=True)
    columns = {"value": values, "received_at": [received_at + n for n in range(len(values))]}
    parquet.write_table(pa.table(columns), topic / f"{name}.parquet")


def archive(spark: Any, home: Path) -> None:
    """Write what has arrived, and stop."""
    records = spark.readStream.schema("value binary, received_at bigint").parquet(
        str(home / "topic")
    )
    query = started(
        spark, records, str(home / "archive"), str(home / "checkpoint"), available_now=True
    )
    query.awaitTermination()


def test_the_topic_is_archived_once_and_without_secrets(lake: Any, tmp_path: Path) -> None:
    first = bank(2)
    second = bank(4)[len(first) :]
    secret = json.loads(second[0].value)
    secret["run"]["facets"]["custom"] = {
        "_producer": "test://x",
        "_schemaURL": "test://x",
        "password": SECRET,
    }
    hidden = json.dumps(secret).encode()
    clear = [one.value for one in (*first, *second)]

    arrive(
        tmp_path / "topic",
        "1",
        [*(one.value for one in first), b"no event"],
        micros_of(first[0].received_at),
    )
    archive(lake, tmp_path)
    arrive(
        tmp_path / "topic",
        "2",
        [*(one.value for one in second), hidden],
        micros_of(second[0].received_at),
    )
    archive(lake, tmp_path)  # goes on where the first one stopped

    folder = arrow.dataset(tmp_path / "archive", partitioning="hive", ignore_prefixes=["_", "."])
    written = folder.to_table().to_pylist()
    assert sorted(row["hash"] for row in written) == sorted(map(content_hash, [*clear, hidden]))
    assert {row["body"] for row in written} > set(clear)
    assert not any(SECRET.encode() in row["body"] for row in written)
    assert any(b'"password"' in row["body"] for row in written)


def test_a_missing_setting_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["archive", "--from-topic", "--to", str(tmp_path)], {})

    assert code == 2
    assert "(--kafka-bootstrap-servers) is not set" in capsys.readouterr().err


def test_missing_kafka_source_names_its_package(
    lake: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    servers = ["--kafka-bootstrap-servers", "127.0.0.1:1"]

    code = main(
        ["archive", "--from-topic", "--to", str(tmp_path), "--checkpoint", str(tmp_path), *servers],
        {},
    )

    assert code == 2
    assert (
        f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{lake.version}"
        in capsys.readouterr().err
    )


def test_failed_query_is_reported_in_one_line(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "topic").mkdir()
    (tmp_path / "topic" / "1.parquet").write_bytes(b"no such thing")
    records = lake.readStream.schema("value binary, received_at bigint").parquet(
        str(tmp_path / "topic")
    )
    query = started(
        lake, records, str(tmp_path / "archive"), str(tmp_path / "checkpoint"), available_now=True
    )

    with pytest.raises(
        StrandlineError, match=r"the query ended: \[STREAM_FAILED\].*started again"
    ) as raised:
        await_end(query, Event())

    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.kafka
def test_killed_broker_or_archiver_loses_and_duplicates_no_event(tmp_path: Path, java: str) -> None:
    records = [one.value for one in bank(12)]
    third = len(records) // 3
    with broker(tmp_path / "broker") as running:
        servers = running[0].bootstrap
        archiver = archiver_of(tmp_path, servers)
        send(servers, records[:third])
        with archiver.started() as process:
            wait_until(
                lambda: len(archived(tmp_path)) == third or process.poll() is not None, SECONDS
            )
            running[0].kill()
            running.append(brokers.start(tmp_path / "broker", int(servers.rpartition(":")[2])))
            send(servers, records[third : 2 * third])
            wait_until(
                lambda: len(archived(tmp_path)) == 2 * third or process.poll() is not None, SECONDS
            )
            assert process.poll() is None
            send(
                servers, records[2 * third :]
            )  # the archiver is killed in whatever it does with them

        code, err = caught_up(archiver, tmp_path, len(records))
        if "KafkaMicroBatchStream.metrics" in err and "started again, it goes on there" in err:
            # Spark's Kafka source fails once, after it has done the micro-batch that a kill cut off.
            code, err = caught_up(archiver, tmp_path, len(records))

    assert code == 0, err
    assert "Traceback" not in err
    assert sorted(archived(tmp_path)) == sorted(map(content_hash, records))
    assert (f"kafka://{servers} lineage", f"file {tmp_path}/archive") in edges(archiver)


def caught_up(archiver: SparkProgram, folder: Path, records: int) -> tuple[int, str]:
    """Run the archiver until it has ended or archived all records, and stop it.

    Its exit code and what it printed.
    """
    with archiver.started() as process:
        wait_until(lambda: len(archived(folder)) == records or process.poll() is not None, SECONDS)
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


def edges(archiver: SparkProgram) -> set[tuple[str, str]]:
    """Return the archiver's reads and writes, as the emitter saw them."""
    return {
        (f"{read['namespace']} {read['name']}", f"{made['namespace']} {made['name']}")
        for event in archiver.events() for read in event["inputs"] for made in event["outputs"]
    }  # fmt: skip
