"""Kernels: Python processes that attach to one JVM with one SparkContext, as notebook services and Livy have them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emitter_world.drivers import SECONDS, Driver, kill_group

LEASE = 3.0  # seconds, in place of thirty
_HOST = """
import json, sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

gateway = launch_gateway()
jvm = gateway.jvm
context = jvm.org.apache.spark.SparkContext.getOrCreate(jvm.org.apache.spark.SparkConf().setAppName("shared"))
print(json.dumps([gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token]), flush=True)

def array(kind, *elements):
    made = gateway.new_array(kind, len(elements))
    for index, element in enumerate(elements):
        made[index] = element
    return made

def histogram():
    name = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    arguments = array(jvm.Object, array(jvm.String))
    kind = jvm.java.lang.Class.forName
    kinds = [kind("javax.management.ObjectName"), kind("java.lang.String"), arguments.getClass(), array(jvm.String).getClass()]
    method = kind("javax.management.MBeanServer").getMethod("invoke", array(jvm.Class, *kinds))
    given = array(jvm.Object, name, "gcClassHistogram", arguments, array(jvm.String, "[Ljava.lang.String;"))
    return str(method.invoke(server, given))

for line in sys.stdin:
    rows = [row.split() for row in histogram().splitlines()]
    found = {row[3]: int(row[1]) for row in rows if len(row) > 3 and row[1].isdigit()}
    claims = [str(key) for key in jvm.java.lang.System.getProperties() if str(key).startswith("strandline.")]
    answer = {"executions": found.get("org.apache.spark.sql.execution.QueryExecution", 0), "claims": claims}
    print(json.dumps(answer), flush=True)
"""
_KERNEL = """
import json, os, sys, threading
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from strandline_spark import activation
from strandline_spark.jvm import claims

claims.SECONDS = float(sys.argv[1])
gateway = launch_gateway()
jvm = gateway.jvm
jsc = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
sc = SparkContext(gateway=gateway, jsc=jsc, conf=SparkConf(_jvm=jvm, _jconf=jsc.getConf()))
spark = SparkSession(sc)

def enabled_at_once():
    threads = [threading.Thread(target=activation.enable, args=(spark,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one.name for one in threading.enumerate()].count("strandline-emitter")

print("true", flush=True)
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""


@dataclass
class Kernel:
    """A process that answers expressions in the terms of its program."""

    process: subprocess.Popen[str]

    def ask(self, expression: str = "0") -> Any:
        """The answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        """The next line of its output."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended with {self.process.wait()}"
        return json.loads(line)

    def write(self, name: str) -> None:
        """Writes a folder of files."""
        self.ask(f"spark.range(3).write.mode('overwrite').parquet({name!r})")

    def emits(self) -> bool:
        """Whether this is the process that has the application's events."""
        return bool(self.ask("bool(activation._emitters)"))

    def kill(self) -> None:
        """As the kernel's owner does it when it hangs."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Its input ends, and so does its program."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0

    def pause(self) -> None:
        """It hangs from now on."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It hangs no more."""
        self.process.send_signal(signal.SIGCONT)


@dataclass
class SharedJvm:
    """A JVM with a SparkContext, and the kernels on it."""

    driver: Driver
    host: Kernel
    port: int
    secret: str

    def waiting_executions(self) -> int:
        """How many QueryExecutions can be reached in the JVM."""
        return int(self.host.ask()["executions"])

    def claims(self) -> list[str]:
        """The properties with which a process claims the application."""
        return list(self.host.ask()["claims"])

    @contextmanager
    def kernel(self) -> Iterator[Kernel]:
        """One more process on it."""
        environ = {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}
        with _process(self.driver, "kernel.py", _KERNEL, environ, str(LEASE)) as kernel:
            kernel.answer()
            yield kernel


@contextmanager
def shared_jvm(folder: Path, conf: Mapping[str, str]) -> Iterator[SharedJvm]:
    """Such a JVM, and no Python that watches it yet."""
    driver = Driver(folder, "", conf)
    driver._write()
    with _process(driver, "host.py", _HOST, {}) as host:
        yield SharedJvm(driver, host, *host.answer())


@contextmanager
def _process(driver: Driver, name: str, program: str, environ: Mapping[str, str], *arguments: str) -> Iterator[Kernel]:
    (driver.folder / name).write_text(program)
    with (
        (driver.folder / f"{name}.err").open("a") as errors,
        subprocess.Popen(
            [sys.executable, str(driver.folder / name), *arguments],
            cwd=driver.folder,
            env=driver._environ() | dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Kernel(process)
        finally:
            kill_group(process)


def until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Waits until something holds; False if it does not in that time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
