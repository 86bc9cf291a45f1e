"""The emitter's cost for a query and for a micro-batch, beside the stock OpenLineage listener's.

Measured are wall time, CPU, Py4J commands and memory.

Off, on and stock take turns in one SparkContext, and events go by HTTP to a server that answers at
once.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from threading import Thread
from typing import Any

from bench import report
from deploy import jars

DRIVER = Path(__file__).parent / "_emitter_driver.py"
SECONDS = 3600
# How many rounds, and how many statements of each variant in a round. "warm": queries from which
# the JIT compiler and the emitters learn.
SHORT = {
    "warm": 4,
    "query": (1, 4),
    "small-query": (1, 4),
    "wide-query": (1, 1),
    "micro-batch": (1, 4),
}
FULL = {
    "warm": 60,
    "query": (80, 2),
    "small-query": (120, 8),
    "wide-query": (10, 3),
    "micro-batch": (16, 8),
}
# The most that Strandline may add to the wall time: ms, or a share of it where that is more.
MOST = {
    "query": (2, 0.03),
    "small-query": (5, 0.03),
    "wide-query": (0, 0.03),
    "micro-batch": (0, 0.03),
}
VARIANTS = ["off", "on", "stock"]
Rows = dict[tuple[str, str], list[dict[str, Any]]]


def run(short: bool) -> None:
    """Measure and record."""
    size = SHORT if short else FULL
    with answering() as url:
        rows = driven({"what": "compare", "variants": VARIANTS, "url": url, **size})
    for kind in MOST:
        record_walls(rows, kind)
        record_cost(rows, kind)
    record_memory(short)


def record_walls(rows: Rows, kind: str) -> None:
    """Wall time in ms without an emitter, and what ours and the stock listener add to it."""
    off = median(wall for row in rows["off", kind] for wall in row["wall"])
    report.record(f"emitter.{kind}.wall.off", off, "ms")
    (ours, ours_by), (stock, stock_by) = added(rows, "on", kind), added(rows, "stock", kind)
    least, share = MOST[kind]
    bound = max(least, share * off)
    report.record(f"emitter.{kind}.wall.added", ours, "ms", most=bound, note=ours_by)
    report.record(f"emitter.{kind}.wall.added.stock", stock, "ms", least=ours, note=stock_by)


def added(rows: Rows, variant: str, kind: str) -> tuple[float, str]:
    """Return the additional time of a variant, and its error.

    The median over the rounds of their medians' difference, and its error.
    """
    pairs = zip(rows[variant, kind], rows["off", kind], strict=True)
    differences = [median(one["wall"]) - median(off["wall"]) for one, off in pairs]
    middle = median(differences)
    error = (
        1.86 * median(abs(one - middle) for one in differences) / len(differences) ** 0.5
    )  # if errors are normal
    told = f"+- {error:.1f}, {len(differences)} rounds" if error else "too few rounds"
    return float(middle), f"over off, {told}"


def record_cost(rows: Rows, kind: str) -> None:
    """CPU time and Py4J commands that ours and the stock listener add to a statement.

    CPU is that of driver and JVM together in ms, also as a share of the statement's own.
    """
    for variant in VARIANTS[1:]:
        pairs = list(zip(rows[variant, kind], rows["off", kind], strict=True))
        cpu = median(one["cpu"] - off["cpu"] for one, off in pairs)
        share = 100 * cpu / median(off["cpu"] for off in rows["off", kind])
        commands = median(one["commands"] - off["commands"] for one, off in pairs)
        report.record(f"emitter.{kind}.cpu.added.{variant}", cpu, "ms", note="Python and JVM")
        report.record(
            f"emitter.{kind}.cpu.share.{variant}", share, "%", note="of what it takes without"
        )
        report.record(f"emitter.{kind}.commands.{variant}", commands, "Py4J commands")


def record_memory(short: bool) -> None:
    """Record the reachable heap with each variant.

    Each has a context of its own, one after the other in one JVM.
    """
    with answering() as url:
        size = {"rounds": 1, "queries": 4} if short else {"rounds": 4, "queries": 60}
        rows = driven({"what": "remember", "variants": VARIANTS, "url": url, **size})
    for variant in VARIANTS:
        heap = mean(row["heap"] for row in rows[variant, "memory"])
        report.record(f"emitter.memory.heap.{variant}", heap, "MiB", note="after a gc")


def driven(told: dict[str, Any]) -> Rows:
    """Return the driver's rows, by variant and kind, in the order of the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        write_conf(Path(folder))
        command = [sys.executable, str(DRIVER), json.dumps({**told, "folder": folder})]
        environ = {**os.environ, "SPARK_CONF_DIR": folder, "SPARK_LOCAL_IP": "127.0.0.1"}
        result = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if result.returncode:
        raise RuntimeError(
            f"the driver ended with code {result.returncode}: {result.stderr[-1000:]}"
        )
    rows: Rows = defaultdict(list)
    for row in map(json.loads, result.stdout.splitlines()):
        rows[row["variant"], row["kind"]].append(row)
    return rows


def write_conf(folder: Path) -> None:
    """Write the conf of all contexts."""
    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.jars": jars.comma_list(["openlineage-2.13"]),
    }
    lines = "".join(f"{key} {value}\n" for key, value in conf.items())
    (folder / "spark-defaults.conf").write_text(lines)
    (folder / "log4j2.properties").write_text("rootLogger.level = off\n")


@contextmanager
def answering() -> Iterator[str]:
    """A server that takes everything, and does little for it.

    It shares the cores with what is measured.
    """
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(_Taking, "127.0.0.1", 0))
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


class _Taking(asyncio.Protocol):
    """One connection: answers 201 as soon as a request is whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = bytearray()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if _is_whole(self._received):
            self._received.clear()
            self._transport.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")


def _is_whole(request: bytearray) -> bool:
    head, blank, body = bytes(request).partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(blank) and (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n"))
