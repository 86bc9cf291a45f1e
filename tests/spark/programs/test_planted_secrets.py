"""A real job with 300 planted secrets: none is in any transport, spool file or log."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.kafka import free_port
from fixtures.emitter.backends import Kafka
from fixtures.emitter.drivers import WAITING, SparkProgram, emitting
from fixtures.emitter.recording import RecordingServer, recording_server
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kafka]

SHAPES = (
    "hunter{:03}",
    "AKIAIOSFODNN7EX{:03}AM",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY{:03}KEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn{:03}.c2lnbmF0dXJl",
    "ghp_16C7e42F292c6912E7710c838347Ae{:03}B4a",
    "dapi0123456789abcdef0123456789abc{:03}",
    "p@ss{:03}:w0rd",
    "s3cr3t-{:03}-dashes",
    "correcthorse{:03}batterystaple",
    "Tr0ub{:03}dor&3",
)
CONF = (
    "spark.bank{}.password=={}",
    "spark.hadoop.fs.s3a.bucket.b{}.secret.key=={}",
    "spark.bank{}.address==https://u:{}@host/x",
    "spark.bank{}.link==https://host/x?token={}",
    "spark.bank{}.database==jdbc:postgresql://h/b?user=u&password={}",
    "spark.bank{}.note==password={}",
)
JOB = (
    WAITING
    + """
import json, logging, sys, time
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

logging.getLogger("strandline").setLevel("DEBUG")
logging.getLogger("strandline").addHandler(logging.FileHandler("strandline.log"))
rounds = json.load(open("secrets.json"))
spark = SparkSession.builder.getOrCreate()

def attempt(action):
    try:
        action()
    except Exception:
        pass

def plant(n, s):
    people = spark.range(3).withColumn("name", f.lit(s()))
    people.write.mode("overwrite").options(
        **{"password": s(), "fs.s3a.secret.key": s(), "header.Authorization": "Bearer " + s()}).parquet(f"people{n}")
    spark.read.options(**{"fs.s3a.access.key": s(), "apiKey": s()}).parquet(f"people{n}").createOrReplaceTempView("people")
    spark.sql(f"CREATE TABLE told{n} USING parquet OPTIONS (password '{s()}') TBLPROPERTIES ('bank.secret' = '{s()}') AS "
              f"SELECT id, sha2(concat(name, '{s()}'), 256) AS digest, CAST(aes_encrypt(name, rpad('{s()}', 16, 'x')) AS STRING) "
              f"AS secret, CASE WHEN name = '{s()}' THEN 1 ELSE 0 END AS is_it FROM people "
              f"WHERE name <> '{s()}' AND name NOT IN ('{s()}', 'x') AND NOT contains(name, '{s()}')")
    attempt(lambda: spark.sql(f"INSERT INTO told{n} SELECT id, raise_error('token={s()}'), name, 0 FROM people"))
    attempt(lambda: spark.sql(f"INSERT INTO told{n} SELECT CAST('{s()}' AS INT), name, name, 0 FROM people"))
    attempt(lambda: people.selectExpr(f"raise_error('jdbc:mysql://u:{s()}@db/bank') AS x").write.parquet("never"))
    attempt(lambda: people.write.format("jdbc").option("url", f"jdbc:postgresql://u:{s()}@127.0.0.1:1/b?password={s()}")
            .option("dbtable", "t").option("user", "u").option("password", s()).save())
    attempt(lambda: people.write.parquet(f"s3a://KEY:{s()}@bucket/people"))
    attempt(lambda: spark.read.json(f"https://u:{s()}@127.0.0.1:1/x?token={s()}").write.parquet("never"))

planted = 0
for n, secrets in enumerate(rounds["batch"]):
    left = iter(secrets)
    plant(n, lambda: next(left))
    assert next(left, None) is None
stream = (spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
          .options(**{f"token{n}": secret for n, secret in enumerate(rounds["read"])}).load())
query = (stream.writeStream.format("parquet").queryName("ticks").option("path", "ticks")
         .options(**{f"secret{n}": secret for n, secret in enumerate(rounds["write"])})
         .option("checkpointLocation", "checkpoint").start())
while query.lastProgress is None and query.exception() is None:
    time.sleep(0.1)
query.stop()
wait_until_told(spark, 1, '"eventType":"ABORT"')
sys.excepthook = lambda *error: print("the job ended")
raise RuntimeError("password=" + rounds["end"])
"""
)
IN_A_ROUND = 23


def test_no_planted_secret_leaves_the_driver(tmp_path: Path, warm_jvm: WarmJvm, kafka: str) -> None:
    planted, conf, rounds = plantation()
    (tmp_path / "secrets.json").write_text(json.dumps(rounds))
    topic = Kafka(kafka, f"secrets.{uuid4().hex}")
    with recording_server() as server:
        conf = emitting(tmp_path) | conf | everywhere(tmp_path, server, topic)
        driver = SparkProgram(tmp_path, JOB, conf, jvm=warm_jvm)
        ran = driver.run()
    on_topic = topic.events(lambda events: len(events) == len(server.bodies()))
    spooled = [file.read_text() for file in (tmp_path / "state").rglob("*.spool")]
    left = {
        "http": [body.decode() for body in server.bodies()],
        "file": driver.events_file.read_text().splitlines(),
        "console": ran.out.splitlines(),
        "log": (tmp_path / "strandline.log").read_text().splitlines(),
        "kafka": list(map(json.dumps, on_topic)),
        "spool": [line for text in spooled for line in text.splitlines()],
    }

    assert len(set(planted)) == 300
    assert "the job ended" in ran.out
    states = {" ".join(line.split()[:2]) for line in driver.lines()}
    assert states >= {
        "COMPLETE bank.default.told9",
        "FAIL bank.default.told9",
        "RUNNING bank.ticks",
        "FAIL bank",
    }
    assert {way for way, lines in left.items() if len(lines) > 100} >= {
        "http",
        "file",
        "console",
        "spool",
    }
    assert on_topic != []
    assert any(
        ": events wait or are refused: " in line and "away: http" in line for line in left["log"]
    )
    assert {way: leaked(planted, lines) for way, lines in left.items()} == {way: [] for way in left}


def plantation() -> tuple[list[str], dict[str, str], dict[str, object]]:
    """All secrets, the conf that holds some of them, and what the job plants of the others."""
    numbers = count()
    planted: list[str] = []

    def another() -> str:
        number = next(numbers)
        planted.append(SHAPES[number % len(SHAPES)].format(number))
        return planted[-1]

    conf = dict(form.format(n, another()).split("==") for form in CONF for n in range(10))
    conf["spark.openlineage.capturedProperties"] = ",".join(["spark.app.name", *conf])
    conf["spark.openlineage.transport.transports.http.auth.apiKey"] = another()
    batch = [[another() for _ in range(IN_A_ROUND)] for _ in range(10)]
    rounds = {"batch": batch, "read": take(4, another), "write": take(4, another), "end": another()}
    return planted, conf, rounds


def take(number: int, another: Callable[[], str]) -> list[str]:
    return [another() for _ in range(number)]


def everywhere(folder: Path, server: RecordingServer, topic: Kafka) -> dict[str, str]:
    """The conf of all transports at once.

    The last one's backend is away, so that all goes to the spool too.
    """
    parts = {
        "http": {"type": "http", "url": server.url},
        "file": {"type": "file", "location": str(folder / "events.jsonl")},
        "console": {"type": "console"},
        "kafka": topic.conf(*topic.address),
        "away": {"type": "http", "url": f"http://127.0.0.1:{free_port()}"},
    }
    found = {
        f"transports.{name}.{key}": value
        for name, part in parts.items()
        for key, value in part.items()
    }
    conf = {"type": "composite", **found}
    return {f"spark.openlineage.transport.{key}": value for key, value in conf.items()} | {
        "spark.strandline.reads": "true"
    }


def leaked(planted: list[str], lines: list[str]) -> list[str]:
    """Return the secrets, or revealing parts of them, that are there; in JSON as in plain text."""
    text = "\n".join(lines)
    return [
        secret
        for secret in planted
        if any(part in text for part in (secret, secret.rpartition("/")[2]))
    ]
