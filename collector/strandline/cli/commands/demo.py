"""`strandline demo`: five Spark jobs of a bank, a Kafka broker and a collector, then what was seen.

Everything lives in one folder that each run makes anew, and every process ends with the demo. It
needs PySpark and pyiceberg beside it (`make demo` installs them) and fetches a broker and Iceberg's
runtime once.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.error import URLError
from urllib.request import urlopen

from strandline.cli.commands import serve
from strandline.demo import aligned as demo_aligned
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo import replay as demo_replay
from strandline.demo import report as demo_report
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes, processes
from strandline.demo.watch import Watch
from strandline.errors import DemoError
from strandline.settings import Settings

T = TypeVar("T")

START_SECONDS = 90
STOP_SECONDS = 15
FETCH_SECONDS = 1800
ROUNDS_SECONDS = 240
CAUGHT_UP_SECONDS = 20
LEASE_SECONDS = 60


def run(options: Namespace, settings: Settings) -> int:
    """Run the demo from beginning to end."""
    begun = time.monotonic()
    bank = Bank(demo_bank.parts_root(), options.dir.resolve(), options.rounds, settings.port)
    if not options.replay:
        demo_bank.require_spark(bank.root)
    with demo_bank.claimed_folder(bank.folder):
        if options.replay:
            return replay(bank, settings)
        return run_parts(bank, options, begun)


def run_parts(bank: Bank, options: Namespace, begun: float) -> int:
    """Run the demo on real parts, and end all of them."""
    try:
        with processes(bank.folder / "logs") as started:
            jars = fetch(bank, "iceberg-4.1", "Iceberg's Spark runtime")
            bootstrap = None if options.http else start_broker(bank, started)
            bank = on_free_port(bank)
            streams, watch = play(bank, options, started, jars, bootstrap)
            demo_report.say(f"done in {time.monotonic() - begun:.0f} s")
            demo_report.tell_page(bank, stays=options.keep)
            if options.keep:
                stay(bank, streams, watch)
            else:
                demo_report.tell_next(bank)
    except KeyboardInterrupt:
        demo_report.say("stopped; nothing is left running")
        return 130
    return 0


def on_free_port(bank: Bank) -> Bank:
    """Return the bank with a port that nobody listens on.

    It is chosen just before the collector starts: another demo may have taken it meanwhile.
    """
    port = demo_bank.port_or_another(bank.port)
    if port != bank.port:
        demo_report.say(f"port {bank.port} is taken; the collector listens on {port}")
    return replace(bank, port=port)


def replay(bank: Bank, settings: Settings) -> int:
    """Load the recording, then serve it until Ctrl-C."""
    begun = time.monotonic()
    count = demo_replay.load(bank.root / demo_replay.RECORDING, bank.database)
    demo_report.say(
        f"Recorded demo: ten minutes of the bank, {count} events, "
        f"loaded in {time.monotonic() - begun:.0f} s"
    )
    bank = on_free_port(bank)
    demo_report.tell_page(bank)
    demo_report.tell_recorded(bank)
    return serve.serve(Namespace(), recorded_settings(settings, bank))


def recorded_settings(settings: Settings, bank: Bank) -> Settings:
    """Return the settings of a collector that shows the recording, and says so."""
    return replace(
        settings,
        database_url=bank.database,
        port=bank.port,
        log_level="warning",
        label="Recorded demo",
    )


def play(
    bank: Bank, options: Namespace, started: Processes, jars: str, bootstrap: str | None
) -> tuple[list[DemoProcess], Watch]:
    """Start everything, wait for the rounds, run the report and the aligned bank, and report."""
    start_collector(bank, bootstrap, started)
    demo_report.say(f"see it while it runs: {bank.url}/")
    watch = Watch(
        started,
        partial(start_collector, bank, bootstrap, started),
        LEASE_SECONDS if options.keep else None,
    )
    transport = (
        demo_bank.kafka_transport(bootstrap) if bootstrap else demo_bank.http_transport(bank.url)
    )
    together = options.together or demo_bank.free_memory() < demo_bank.ONE_APPLICATION_BELOW
    demo_bank.write_conf(
        bank, jars, transport, cores=2 if together else 1, lease_seconds=LEASE_SECONDS
    )
    demo_lake.make_tables(bank)
    streams = start_streams(bank, started, keep=options.keep, together=together)
    wait_for_rounds(bank, streams, watch, keep=options.keep)
    second = None if options.plain else demo_aligned.start(bank, options.keep, started)
    report(bank, started)
    if second is not None:
        demo_aligned.show(second, watch)
    watch.look()
    demo_report.wait_until_collected(bank, [] if options.keep else streams, CAUGHT_UP_SECONDS)
    demo_report.tell(bank)
    return streams, watch


def fetch(bank: Bank, jars: str, what: str) -> str:
    """Fetch a set of jars and return them as `spark.jars` takes them.

    A line is printed if that takes a while.
    """
    if not (bank.cache / "jars" / jars).exists():
        demo_report.say(f"fetching {what} (once)")
    command = [sys.executable, "-m", "deploy.jars", jars]
    result = subprocess.run(
        command,
        cwd=bank.root,
        env=bank.deploy_environ(),
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS,
        check=False,
    )
    if result.returncode:
        raise DemoError(result.stderr.strip().splitlines()[-1])
    return ",".join(str(file) for file in sorted(Path(result.stdout.strip()).glob("*.jar")))


def start_broker(bank: Bank, started: Processes) -> str | None:
    """Start Kafka and give its address, or say why events go by HTTP instead."""
    try:
        fetch(bank, "kafka", "a Kafka broker")
        command = [sys.executable, "-m", "deploy.kafka", str(bank.folder / "kafka")]
        broker = started.start("kafka", command, bank.root, bank.deploy_environ())
        address = wait(broker, lambda: re.search(r"^[\d.]+:\d+$", broker.output(), re.MULTILINE))
    except DemoError as error:
        demo_report.say(f"no Kafka here, so events go by HTTP: {error}")
        return None
    demo_report.say(f"Kafka listens on {address[0]}")
    return str(address[0])


def start_collector(bank: Bank, bootstrap: str | None, started: Processes) -> DemoProcess:
    """Start `strandline serve` and wait until it listens: on its port another might answer."""
    command = [
        sys.executable,
        "-m",
        "strandline",
        "serve",
        "--port",
        str(bank.port),
        "--database-url",
        bank.database,
    ]
    command += ["--kafka-bootstrap-servers", bootstrap] if bootstrap else []
    environ = os.environ | {"STRANDLINE_LOG_LEVEL": "info"}
    part = started.start("collector", command, bank.folder, environ)
    wait(part, lambda: "listening" in part.output() and answers(f"{bank.url}/healthz"))
    demo_report.say(f"the collector answers on {bank.url}")
    return part


def start_streams(
    bank: Bank, started: Processes, *, keep: bool, together: bool
) -> list[DemoProcess]:
    """Start the drivers side by side, or one application where memory is short."""
    environ = bank.environ(keep)
    if together:
        demo_report.say(
            "one Spark application with four streams (independent drivers need 5 GB of free memory)"
        )
        return [started.start("together", bank.job("together"), bank.folder, environ)]
    demo_report.say("four Spark drivers start side by side: ingest -> credits, debits -> balance")
    return [started.start(name, bank.job(name), bank.folder, environ) for name in demo_bank.STREAMS]


def wait_for_rounds(bank: Bank, streams: list[DemoProcess], watch: Watch, *, keep: bool) -> None:
    """Show progress until the streams have ended, or have done their rounds if they go on."""
    progress = demo_report.Progress(bank)
    deadline = time.monotonic() + ROUNDS_SECONDS
    while any(part.running for part in streams):
        watch.look()
        if keep and progress.rounds() >= bank.rounds:
            break
        if time.monotonic() > deadline:
            raise DemoError(
                f"the streams did not end within {ROUNDS_SECONDS} s; their logs are in "
                f"{bank.folder / 'logs'}"
            )
        progress.show()
        time.sleep(1)
    watch.look()
    progress.end()


def report(bank: Bank, started: Processes) -> None:
    """Run the batch job."""
    demo_report.say(
        "the report: CREATE TABLE lake.bank.report AS SELECT ... FROM lake.bank.balance"
    )
    part = started.start("report", bank.job("report"), bank.folder, bank.environ(keep=False))
    with contextlib.suppress(subprocess.TimeoutExpired):
        part.process.wait(ROUNDS_SECONDS)
    part.check()


def stay(bank: Bank, streams: list[DemoProcess], watch: Watch) -> None:
    """Leave everything running until Ctrl-C, then let the streams end between two micro-batches."""
    demo_report.tell_while_up(bank)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            watch.look()
            time.sleep(1)
    demo_report.say("the streams end")
    bank.stop_file.touch()
    let_end(streams)
    if not any(
        part.killed for part in streams
    ):  # a killed driver tells of its end by its heartbeat timeout only
        demo_report.wait_until_collected(bank, streams, CAUGHT_UP_SECONDS)
    demo_report.say("stopped; nothing is left running")


def let_end(streams: list[DemoProcess]) -> None:
    """Wait a little for streams that were asked to end."""
    deadline = time.monotonic() + STOP_SECONDS
    while any(part.running for part in streams) and time.monotonic() < deadline:
        time.sleep(0.1)


def wait(part: DemoProcess, question: Callable[[], T | None]) -> T:
    """Ask until there is an answer, while the part lives and there is time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        part.check()
        if answer := question():
            return answer
        time.sleep(0.1)
    raise DemoError(
        f"{part.name} was not ready within {START_SECONDS} s; {part.log}:\n{part.last_lines()}"
    )


def answers(url: str) -> bool:
    """Return whether something answers there with 200."""
    try:
        with urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False
