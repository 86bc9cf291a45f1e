"""One real Kafka broker on this machine.

KRaft, a single node, loopback only, for the demo and the tests.

`python -m deploy.kafka FOLDER` fetches the broker, prints its bootstrap address as the first line,
and serves until its standard input closes or it gets SIGTERM or SIGINT: a broker never outlives
whoever started it. A folder that was used before keeps its records. For any other purpose take a
broker that somebody looks after.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy import jars

READY_SECONDS = 180
STOP_SECONDS = 20
LARGEST_MESSAGE = 33 * 1024 * 1024  # an event of 32 MiB and what the record adds to it
QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
)  # half the time to start; benchmarks give others
HOST = "127.0.0.1"


class BrokerError(Exception):
    """The broker did not start; the message says why and what it wrote last."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: where it listens and the process that it is."""

    bootstrap: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it in good order, or hard when that takes too long."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)


def start(folder: Path, port: int = 0, jvm: tuple[str, ...] = QUICK) -> Broker:
    """Start a broker with its data in `folder`, on `port` or a free one.

    Raise BrokerError or jars.JarsError.
    """
    class_path = jars.class_path(jars.fetch("kafka"))
    folder.mkdir(parents=True, exist_ok=True)
    attempts = 1 if port else 3  # another process may take a free port before the broker does
    for attempt in range(attempts):
        chosen = port or free_port()
        write_properties(folder, chosen)
        format_storage(folder, class_path)
        try:
            return launch(folder, class_path, chosen, jvm)
        except BrokerError as error:
            if attempt == attempts - 1 or "in use" not in str(error):
                raise
    raise AssertionError("unreachable")


def launch(folder: Path, class_path: str, port: int, jvm: tuple[str, ...]) -> Broker:
    """Start the JVM and wait until its port answers."""
    command = [
        jars.java(),
        "-Xmx384m",
        *jvm,
        "-cp",
        class_path,
        "kafka.Kafka",
        str(folder / "server.properties"),
    ]
    with (folder / "broker.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    broker = Broker(f"{HOST}:{port}", process)
    try:
        wait_until_open(port, process, folder / "broker.log")
    except BaseException:
        broker.kill()
        raise
    return broker


def wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the port takes connections; raise when the process ends or the time is over."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BrokerError(f"Kafka ended with code {process.returncode}: {last_lines(log)}")
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.1)
    raise BrokerError(f"Kafka did not open port {port} within {READY_SECONDS} s: {last_lines(log)}")


def format_storage(folder: Path, class_path: str) -> None:
    """Prepare the data folder once, as KRaft asks."""
    if (folder / "data" / "meta.properties").exists():
        return
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    command = [jars.java(), *QUICK, "-cp", class_path, "kafka.tools.StorageTool", "format"]
    command += ["-t", cluster, "-c", str(folder / "server.properties")]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=READY_SECONDS, check=False
    )
    if result.returncode:
        raise BrokerError(
            f"Kafka cannot format {folder / 'data'}: "
            f"{(result.stderr or result.stdout).strip()[-500:]}"
        )


def write_properties(folder: Path, port: int) -> None:
    """Write server.properties.

    The voter's address stays from the first start, because the data names it.
    """
    file = folder / "server.properties"
    controller = voter_port(file) or free_port()
    rows = (f"{key}={value}\n" for key, value in properties_of(folder, port, controller).items())
    file.write_text("".join(rows))


def voter_port(file: Path) -> int | None:
    """Return the controller's port in an existing file, while nobody else has taken it."""
    if not file.exists():
        return None
    voters = [
        line
        for line in file.read_text().splitlines()
        if line.startswith("controller.quorum.voters=")
    ]
    port = int(voters[0].rpartition(":")[2])
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return port if probe.connect_ex((HOST, port)) else None


def properties_of(folder: Path, port: int, controller: int) -> Mapping[str, str | int]:
    """Return the broker's settings.

    One node, quick to start, the log's own clock, events of up to 32 MiB.
    """
    internal = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "num.partitions": 3,
        "log.message.timestamp.type": "LogAppendTime",
        "message.max.bytes": LARGEST_MESSAGE,
        "replica.fetch.max.bytes": LARGEST_MESSAGE,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "broker.heartbeat.interval.ms": 500,
        **{f"{topic}.replication.factor": 1 for topic in internal},
        **{f"{topic}.num.partitions": 1 for topic in internal},
        **{f"{topic}.min.isr": 1 for topic in internal[1:]},
    }


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def last_lines(log: Path) -> str:
    """Return the end of the broker's log."""
    return log.read_text(errors="replace").strip()[-800:] or "it wrote nothing"


def serve_until_left_alone(broker: Broker) -> None:
    """Return when standard input closes, a signal comes, or the broker ends."""
    while broker.process.poll() is None:
        ready, _, _ = select.select([sys.stdin], [], [], 0.5)
        if ready and not os.read(sys.stdin.fileno(), 4096):
            return


def main(argv: list[str]) -> int:
    """`python -m deploy.kafka FOLDER [--port N]`."""
    parser = argparse.ArgumentParser(prog="deploy.kafka", description=__doc__)
    parser.add_argument("folder", type=Path, help="where settings, records and log are kept")
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        broker = start(arguments.folder.resolve(), arguments.port)
    except (BrokerError, jars.JarsError) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        print(broker.bootstrap, flush=True)
        serve_until_left_alone(broker)
    finally:
        broker.stop()
    return broker.process.returncode not in (0, 143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
