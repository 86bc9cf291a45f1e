"""`strandline serve --processes 2`: both answer the same and see at once what the other took in; what dies is replaced."""

import http.client
import io
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.typing import FilteringBoundLogger

from fixtures.kafka import wait_until
from fixtures.versions_server.process import PATIENCE, Served, served
from strandline.api.answering import listening
from strandline.api.answering.asking import UNANSWERED
from strandline.api.answering.processes import AnsweringProcesses
from strandline.errors import StrandlineError
from strandline.logs import make_log
from strandline.metrics import Metrics
from strandline.settings import Settings
from worlds.sample_events import as_bytes, run_event

TWO = ("--processes", "2")
LINEAGE = "/api/v2/lineage?node=job:tests:load"
Connections = dict[int, http.client.HTTPConnection]


@contextmanager
def two_processes(url: str, folder: Path, *flags: str) -> Iterator[tuple[Served, Connections]]:
    """A server, and a connection to each of its processes by its id, that of the first one first."""
    with served(url, folder, 1, *TWO, *flags) as (server,), connected(server) as found:
        yield server, found


@contextmanager
def connected(server: Served) -> Iterator[Connections]:
    """A connection to each of two processes of a server."""
    found: Connections = {}
    opened: list[http.client.HTTPConnection] = []

    def has_all() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        opened.append(connection)
        for one in (connection, *found.values()):  # a server closes those on which nothing is asked for five seconds
            ask(one, "/healthz")
        found.setdefault(holder(connection.sock, server.processes()), connection)
        return len(found) == 2

    try:
        wait_until(has_all)
        yield dict(sorted(found.items(), key=lambda one: one[0] != server.processes()[0]))
    finally:
        for one in opened:
            one.close()


def holder(sock: socket.socket, processes: list[int]) -> int:
    """The process at the other end of a connection."""
    ours, theirs = (f"{port:04X}" for port in (sock.getsockname()[1], sock.getpeername()[1]))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = {
        line[9] for line in lines if line[1].endswith(f":{theirs}") and line[2].endswith(f":{ours}") and line[9] != "0"
    }
    return next(process for process in processes if f"socket:[{inode}]" in open_files(process))


def open_files(process: int) -> set[str]:
    """What a process has open."""
    found = set()
    for file in Path(f"/proc/{process}/fd").iterdir():
        try:
            found.add(str(file.readlink()))
        except OSError:  # closed meanwhile
            continue
    return found


def ask(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The body of an answer that is no refusal."""
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return body


def send(connection: http.client.HTTPConnection, number: int) -> None:
    """Post the end of a run that reads a table of its own."""
    event = run_event(str(number), inputs=[{"namespace": "db", "name": f"in_{number}"}])
    connection.request("POST", "/api/v1/lineage", as_bytes(event), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (201, b"")


def counted(connection: http.client.HTTPConnection) -> dict[str, float]:
    """What the server has counted, by name and labels."""
    families = text_string_to_metric_families(ask(connection, "/metrics").decode())
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in families
        if family.type in ("counter", "histogram")
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_each_sees_at_once_what_the_other_took_in_and_answers_the_same(database_url: str, tmp_path: Path) -> None:
    with two_processes(database_url, tmp_path) as (_, processes):
        first, second = processes.values()
        for number in range(6):
            taking, asked = (first, second) if number % 2 else (second, first)
            send(taking, number)

            answers = [orjson.loads(ask(one, LINEAGE)) for one in (asked, taking)]

            assert [answers[0][part] for part in ("nodes", "edges")] == [
                answers[1][part] for part in ("nodes", "edges")
            ]
            assert f"in_{number}" in {node["name"] for node in answers[0]["nodes"]}


def test_what_each_counts_is_told_by_both_and_outlives_them(sqlite_url: str, tmp_path: Path) -> None:
    with two_processes(sqlite_url, tmp_path) as (server, processes):
        first, second = processes.values()
        for number, one in enumerate((first, second, second)):
            send(one, number)
        stored = "strandline_events_total[('outcome', 'stored'), ('source', 'http')]"
        posts = "strandline_http_requests_total[('method', 'POST'), ('status', '201')]"
        for one in (first, second):
            told = counted(one)
            assert (told[stored], told[posts]) == (3, 3)
        before = counted(first)
        lost = next(process for process in processes if process != server.processes()[0])

        os.kill(lost, signal.SIGKILL)
        wait_until(lambda: lost not in server.processes())
        with connected(server) as processes:
            first, second = processes.values()
            send(second, 3)
            after = counted(first)

        assert all(after[name] >= value for name, value in before.items() if "process_" not in name)
        assert (after[stored], after[posts]) == (4, 4)


def test_each_knows_whether_the_consumer_works(sqlite_url: str, tmp_path: Path) -> None:
    with two_processes(sqlite_url, tmp_path, "--kafka-bootstrap-servers", "127.0.0.1:1") as (_, processes):

        def faults(one: http.client.HTTPConnection) -> dict[str, str]:
            one.request("GET", "/readyz")
            answer = one.getresponse()
            found: dict[str, str] = orjson.loads(answer.read())["faults"]
            return found

        first, second = processes.values()
        wait_until(lambda: all("consumer" in faults(one) for one in (first, second)))
        wait_until(lambda: faults(first) == faults(second))


def test_what_one_refused_is_listed_by_all_at_once(database_url: str, tmp_path: Path) -> None:
    with two_processes(database_url, tmp_path) as (_, processes):
        first, second = processes.values()
        for number in range(1, 7):
            refusing, asked = (first, second) if number % 2 else (second, first)
            refuse(refusing)

            (one,) = orjson.loads(ask(asked, "/api/v2/refused-events"))["items"]

            assert one["count"] == number


def refuse(connection: http.client.HTTPConnection) -> None:
    """Post what is no event."""
    connection.request("POST", "/api/v1/lineage", b"{}", {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 422


@pytest.mark.parametrize("answer", [lambda: 1 / 0, lambda: threading.Lock()], ids=["raises", "cannot be sent"])
def test_where_the_first_fails_over_a_question_the_other_says_so_and_goes_on(
    answer: Callable[[], object], sqlite_url: str
) -> None:
    logged = io.StringIO()
    asked: list[Callable[[], object]] = [answer, lambda: "no topic"]
    answers: dict[str, Callable[[], object]] = {"consumer": lambda: asked.pop(0)()}
    with asked_first(sqlite_url, answers, make_log("json", stream=logged)) as connection:
        connection.request("GET", "/readyz")
        failed = connection.getresponse()
        problem = orjson.loads(failed.read())
        connection.request("GET", "/readyz")
        faults = orjson.loads(connection.getresponse().read())["faults"]

    assert (failed.status, problem["detail"]) == (500, UNANSWERED)
    assert faults == {"consumer": "no topic"}
    (line,) = map(orjson.loads, logged.getvalue().splitlines())
    assert line["question"] == "consumer"
    assert "Traceback" in line["exception"]


@contextmanager
def asked_first(
    url: str, answers: dict[str, Callable[[], object]], log: FilteringBoundLogger
) -> Iterator[http.client.HTTPConnection]:
    """A connection to a process for which this one is the first and answers its questions."""
    settings = Settings(database_url=url, port=0, log_level="error", memory_bytes=64 * 2**30)
    sockets = listening.listen(settings)
    connection = http.client.HTTPConnection("127.0.0.1", sockets[0].getsockname()[1], timeout=PATIENCE)
    with AnsweringProcesses(sockets, settings, Metrics(several=True), log, answers), closing(connection):
        yield connection


def test_a_signal_ends_all_processes(sqlite_url: str, tmp_path: Path) -> None:
    with two_processes(sqlite_url, tmp_path) as (server, _):
        started = server.processes()
        assert len(started) >= 3

        server.stop()

        assert not [process for process in started if is_running(process)]


def test_no_process_outlives_the_first(sqlite_url: str, tmp_path: Path) -> None:
    with two_processes(sqlite_url, tmp_path) as (server, _):
        started = server.processes()

        server.kill()

        wait_until(lambda: not any(map(is_running, started)))


def is_running(process: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("others", [1, 2])
def test_a_port_is_shared_with_no_other_server(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "FREED_SECONDS", 0)
    held = listening.listen(Settings(port=0, processes=others))
    port = held[0].getsockname()[1]
    try:
        assert {one.getsockname()[1] for one in held} == {port}
        with pytest.raises(StrandlineError, match=f"cannot listen on 127.0.0.1:{port}"):
            listening.listen(Settings(port=port, processes=2))
    finally:
        for one in held:
            one.close()
