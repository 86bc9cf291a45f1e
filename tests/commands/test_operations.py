"""Running a collector from the command line: output, streams and exit codes."""

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.kafka import free_port
from fixtures.kafka import ROOT
from fixtures.waiting import wait_until
from strandline.cli import main
from worlds.sample_events import as_bytes, run_event

READER = ("--scope", "read", "--namespace", "*")


def test_check_reports_every_fault_at_once(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["migrate"], environ)
    capsys.readouterr()

    code = main(
        ["check"],
        environ | {"STRANDLINE_PORT": "70000", "STRANDLINE_HOSTS": "x", "STRANDLINE_AUTH": "maybe"},
    )

    told = capsys.readouterr()
    assert code == 1
    assert told.out.splitlines() == [
        "database: ok",
        "topic: none is set, so events come over HTTP only",
    ]
    assert told.err.splitlines() == [
        "strandline: STRANDLINE_PORT=70000 (--port) is not a whole number from 0 to 65535",
        "strandline: STRANDLINE_AUTH=maybe (--auth) is not one of auto, off, required",
        "strandline: STRANDLINE_HOSTS is not a setting; is STRANDLINE_HOST meant?",
    ]


def test_check_reports_the_same_as_json_and_creates_no_database(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["check", "--json"], environ)

    told = capsys.readouterr()
    fine = {"topic": "none is set, so events come over HTTP only", "settings": "ok"}
    fault = (
        f"database: there is no database {tmp_path}/strandline.db yet: "
        "start strandline serve, or set STRANDLINE_DATABASE_URL (--database-url)"
    )
    assert (code, json.loads(told.out)) == (1, {"fine": fine, "faults": [fault]})
    assert told.err.splitlines() == [f"strandline: {fault}"]
    assert list(tmp_path.iterdir()) == []


def test_check_creates_no_database(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(
        ["check"], environ | {"STRANDLINE_DATABASE_URL": f"sqlite:///{tmp_path}/data/strandline.db"}
    )

    assert code == 1
    assert capsys.readouterr().err == (
        f"strandline: database: there is no database {tmp_path}/data/strandline.db yet: "
        "start strandline serve, or set STRANDLINE_DATABASE_URL (--database-url)\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_check_continues_after_an_invalid_database_address(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(
        ["check", "--database-url", "postgresql://u:hunter2@h:abc/db", "--retention-days", "0"], {}
    )

    told = capsys.readouterr()
    assert code == 1
    assert told.out.splitlines() == ["topic: none is set, so events come over HTTP only"]
    address, days = told.err.splitlines()
    assert address.startswith(
        "strandline: STRANDLINE_DATABASE_URL (--database-url) is not an address like "
    )
    assert "hunter2" not in address
    assert (
        days
        == "strandline: STRANDLINE_RETENTION_DAYS=0 (--retention-days) is not a whole number from 1 to 36500"
    )


def test_check_does_not_contact_an_invalid_topic(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["migrate"], environ)
    capsys.readouterr()

    code = main(
        ["check", "--kafka-bootstrap-servers", "127.0.0.1:1", "--kafka-topic", "bad topic!"],
        environ,
    )

    told = capsys.readouterr()
    assert (code, told.out) == (1, "database: ok\n")
    (line,) = told.err.splitlines()
    assert line.startswith(
        "strandline: STRANDLINE_KAFKA_TOPIC=bad topic! (--kafka-topic) is not a topic name: "
    )


@pytest.mark.postgres
def test_check_finds_a_read_only_postgresql(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"

    codes = [main(["check", "--database-url", url], {}) for url in (postgres_url, address)]

    assert codes == [0, 1]
    assert capsys.readouterr().err == (
        "strandline: database: nothing can be written (transaction_read_only is on): "
        "it is a standby, so name the primary, or default_transaction_read_only is set\n"
    )


@pytest.mark.postgres
def test_check_finds_a_postgresql_with_too_few_connections(
    postgres_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = main(["check", "--database-url", postgres_url], {})
    capsys.readouterr()
    monkeypatch.setattr("strandline.store.sql.engine.OVERFLOW", 60)
    too_few = main(["check", "--database-url", postgres_url], {})

    assert (enough, too_few) == (0, 1)
    assert (
        "connections: strandline serve opens up to 130, strandline consume up to 65;"
        in capsys.readouterr().err
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
@pytest.mark.parametrize(("path", "what"), [("strandline.db", "file"), (".", "folder")])
def test_check_finds_an_unwritable_file(
    own_sqlite_url: str, tmp_path: Path, path: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / path).chmod(0o500)

    code = main(["check", "--database-url", own_sqlite_url], {})

    (tmp_path / path).chmod(0o700)
    assert code == 1
    assert capsys.readouterr().err == (
        f"strandline: database: the {what} {tmp_path / path} cannot be written by this user\n"
    )


def first_key(environ: dict[str, str]) -> str:
    """Return how the first key of a store is made."""
    return (
        "strandline keys add admin --scope admin --namespace '*' --database-url "
        f"{environ['STRANDLINE_DATABASE_URL']} (or set STRANDLINE_ADMIN_KEY_FILE to a file: "
        "the server makes the first key in it)"
    )


def test_check_reports_a_missing_api_key(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["keys", "add", "airflow", *READER], environ)
    main(["keys", "revoke", "airflow"], environ)
    capsys.readouterr()

    code = main(["check", "--host", "0.0.0.0"], environ)

    assert code == 1
    assert capsys.readouterr().err == (
        f"strandline: 0.0.0.0 needs API keys and there is none: {first_key(environ)}\n"
    )


def test_key_is_created_once_and_can_be_revoked(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [
        main(["keys", *action], environ)
        for action in (["add", "a", *READER], ["add", "a", *READER], ["revoke", "a"])
    ]
    told = capsys.readouterr()
    main(["keys", "list", "--json"], environ)

    assert codes == [0, 1, 0]
    assert re.match(r"st_[0-9a-f]{8}_[\w-]{43}\n", told.out)
    assert told.err == "strandline: there is a key a already; revoke it first\n"
    (listed,) = json.loads(capsys.readouterr().out)["items"]
    assert listed["name"] == "a"
    assert listed["revokedAt"] is not None


def test_replay_reports_invalid_lines(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(
        b"\n".join([as_bytes(run_event("1")), b"no event", b"", as_bytes(run_event("1"))])
    )

    code = main(["replay", str(file)], environ)
    told = capsys.readouterr()
    letters = main(["replay", "--dead-letters", "--json"], environ)
    again = main(["replay", str(file)], environ)

    assert (code, letters, again) == (1, 1, 1)
    assert told.out == f"{file}: 1 stored, 1 duplicate, 1 dead\n"
    assert told.err.startswith(f"strandline: {file}:2: not an OpenLineage event: ")
    counts, second = capsys.readouterr().out.splitlines()
    assert json.loads(counts) == {"stored": 0, "duplicate": 0, "dead": 1, "unread": 0}
    assert second == f"{file}: 2 duplicate, 1 dead"  # and not "0 stored"


@pytest.mark.parametrize("damage", [slice(None, -6), slice(None, 30)])
def test_truncated_file_is_reported_in_one_line(
    environ: dict[str, str], tmp_path: Path, damage: slice, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl.gz"
    file.write_bytes(gzip.compress(as_bytes(run_event("1")))[damage])

    assert main(["replay", str(file)], environ) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"strandline: {file}: Compressed file ended before the end-of-stream marker"
    )


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["replay"], 2, "replay: name files, or say --dead-letters"),
        (["replay", "nothing.jsonl"], 1, "no such file: nothing.jsonl"),
        (
            ["keys", "add", " ", *READER],
            2,
            "keys add: the name is empty, or not one line: say who will use the key",
        ),
        (
            ["keys", "add", "a\nb", *READER],
            2,
            "keys add: the name is empty, or not one line: say who will use the key",
        ),
        (
            ["keys", "add", "a", "--namespace", "*"],
            2,
            "keys add: a key needs a scope: read, ingest, admin",
        ),
        (
            ["keys", "add", "a", "--scope", "read"],
            2,
            "keys add: a key needs a namespace, or a pattern of namespaces",
        ),
        (
            ["keys", "add", "a", *READER, "--days", "0"],
            2,
            "keys add: --days is not a whole number from 1 to 36500",
        ),
        (
            ["migrate", "--database-url", "sqlite:////proc/none/x.db"],
            1,
            "No such file or directory: /proc/none",
        ),
        (
            ["serve", "--port", "any"],
            2,
            "STRANDLINE_PORT=any (--port) is not a whole number from 0 to 65535",
        ),
    ],
)
def test_problem_is_reported_in_one_line_with_its_remedy(
    environ: dict[str, str],
    argv: list[str],
    code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(argv, environ) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"strandline: {told}")


def test_public_address_requires_an_api_key(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["serve", "--host", "0.0.0.0", "--port", "0"], environ)

    assert code == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"strandline: 0.0.0.0 needs API keys and there is none: {first_key(environ)}"
    )


def test_ingest_key_is_printed_with_its_spark_conf(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(
        ["keys", "add", "spark", "--scope", "ingest", "--namespace", "bank*", "--days", "30"],
        environ,
    )
    key, _, _, *lines = capsys.readouterr().out.splitlines()
    main(["keys", "list"], environ)

    conf, _, hint = "\n".join(lines).partition("\n\n")
    assert dict(line.split() for line in conf.splitlines()) == {
        "spark.strandline.enabled": "true",
        "spark.strandline.collector.url": "http://127.0.0.1:5000",
        "spark.strandline.collector.token": key,
    }
    assert (
        "spark.strandline.collector.token.file" in hint,
        "STRANDLINE_KEY_FILE" in hint,
        key in hint,
    ) == (
        True,
        True,
        False,
    )
    assert {"ingest", "bank*", "never"} <= set(capsys.readouterr().out.split())


def test_an_ingest_key_is_printed_with_the_address_that_the_collector_serves(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["keys", "add", "spark", "--scope", "ingest", "--namespace", "*"]
    with served(environ) as (running, port):
        wait_until(lambda: is_ready(port))
        main(command, environ)
        printed = capsys.readouterr().out
        ended(running)
    main(["keys", "add", "later", *command[3:]], environ | {"STRANDLINE_PUBLIC_URL": "https://me"})

    assert f"spark.strandline.collector.url    http://127.0.0.1:{port}\n" in printed
    assert "spark.strandline.collector.url    https://me\n" in capsys.readouterr().out


def test_busy_port_is_reported_with_the_remedy(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code = main(["serve", "--port", str(port)], environ)

    assert code == 1
    assert capsys.readouterr().err == (
        f"strandline: cannot listen on 127.0.0.1:{port}: Address already in use; "
        "take another port with --port or STRANDLINE_PORT (0: any)\n"
    )


def test_busy_metrics_port_is_reported_with_the_remedy(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        argv = ["consume", "--kafka-bootstrap-servers", "127.0.0.1:1", "--metrics-port", str(port)]
        code = main(argv, environ)

    assert code == 1
    assert capsys.readouterr().err == (
        f"strandline: cannot serve metrics on 127.0.0.1:{port}: Address already in use; "
        "take another port with --metrics-port or STRANDLINE_METRICS_PORT\n"
    )


@pytest.mark.parametrize("command", ["consume", "serve", "check"])
def test_missing_kafka_file_is_reported(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    kafka = {
        "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "STRANDLINE_KAFKA_SSL_CAFILE": f"{tmp_path}/ca.pem",
    }

    assert main([command], environ | kafka) != 0

    assert (
        f"STRANDLINE_KAFKA_SSL_CAFILE={tmp_path}/ca.pem does not exist" in capsys.readouterr().err
    )


def test_serve_creates_its_database_and_stops_cleanly(environ: dict[str, str]) -> None:
    with served(environ) as (running, port):
        wait_until(lambda: is_ready(port))
        stored = httpx.post(
            f"http://127.0.0.1:{port}/api/v1/lineage", content=as_bytes(run_event()), timeout=20
        )
        told = ended(running)

    assert stored.status_code == 201
    assert running.returncode == 0
    assert f"http://127.0.0.1:{port}" in [line.get("address") for line in told]
    assert (told[-1]["event"], told[-1]["events"]) == ("stopped", 1)


@pytest.mark.slow
def test_open_page_does_not_delay_shutdown(environ: dict[str, str]) -> None:
    with served(environ) as (running, port):
        wait_until(lambda: is_ready(port))
        with httpx.stream("GET", f"http://127.0.0.1:{port}/api/v2/stream", timeout=60) as page:
            lines = page.iter_lines()
            assert next(line for line in lines if line.startswith("event")) == "event: change"
            log = ended(running)

    assert running.returncode == 0
    assert [
        line for line in log if line["level"] != "info"
    ] == []  # as where it lost patience: "graceful shutdown exceeded"


@pytest.mark.slow
def test_serve_stops_without_errors_while_kafka_is_unreachable(environ: dict[str, str]) -> None:
    nobody = {"STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}"}
    with served(environ | nobody, IMPATIENT) as (running, port):
        wait_until(lambda: has_consumer_waiting(port))
        told = ended(running)

    assert running.returncode == 0
    assert [line for line in told if line["level"] == "error"] == []
    assert [line["reason"] for line in told if line["event"] == "the consumer has stopped"] == [
        "stopped before Kafka could be reached"
    ]


# else half a minute
IMPATIENT = "import kafka; kafka.KafkaConsumer.DEFAULT_CONFIG['bootstrap_timeout_ms'] = 500"


@contextmanager
def served(
    environ: dict[str, str], code: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`strandline serve` as a process, after some `code` in it, and its port."""
    port = free_port()
    path = os.pathsep.join(str(ROOT / part) for part in ("collector", "."))
    start = f"{code}\nimport strandline.__main__"
    command = [sys.executable, "-c", start, "serve", "--port", str(port), "--log-format", "json"]
    running = subprocess.Popen(
        command, env=os.environ | environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE
    )
    try:
        yield running, port
    finally:
        running.kill()
        running.communicate()


def ended(running: "subprocess.Popen[bytes]") -> list[dict[str, Any]]:
    """Return the log of the process after it was told to stop."""
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    return [json.loads(line) for line in told.decode().splitlines()]


def has_consumer_waiting(port: int) -> bool:
    """Return true if a server answers there that its consumer reaches no broker."""
    try:
        return "no Kafka at" in httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).text
    except httpx.TransportError:
        return False


def is_ready(port: int) -> bool:
    """Return true if a server answers there that it is ready."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
