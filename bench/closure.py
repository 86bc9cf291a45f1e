"""The closure of a whole graph: what each table reaches, by `strandline analyse` with Spark on this machine's cores.

Of 100,000 jobs (`closure=100000`) the graph has 300,000 nodes and a million edges. Spark's start is counted.
"""

import json
from collections.abc import Sequence

from bench import _wide_lakehouse as lakehouse
from bench._commands import strandline
from bench.databases import database, opened
from bench.report import record

JOBS, JOBS_SHORT = 100_000, 100
DEPTH = 20
AREA = 200  # jobs that read each other
TARGET_SECONDS = 600


def run(short: bool, sizes: Sequence[int] = ()) -> None:
    """Measure and record; short: few jobs, no judgement. `sizes` are in jobs."""
    for jobs in sizes or ((JOBS_SHORT,) if short else (JOBS,)):
        closure(jobs, judged=not short)


def closure(jobs: int, *, judged: bool) -> None:
    """Record how long it takes to find what each table of the graph reaches."""
    with database("sqlite") as url, opened(url) as engine:
        lakehouse.fill(engine, jobs, AREA)
        ran = strandline("analyse", "--database-url", url, "--report", "impact", "--depth", str(DEPTH), "--json")
    found = json.loads(ran.output)["closures"]["datasets"]
    record(f"closure.{jobs}_jobs.depth", found["depth"], "jobs", note=f"complete: {found['complete']}")
    record(f"closure.{jobs}_jobs.cpu", ran.processor, "s", note="driver, JVM and workers")
    met = ran.seconds <= TARGET_SECONDS if judged else None
    record(f"closure.{jobs}_jobs", ran.seconds, "s", f"<= {TARGET_SECONDS}", met, f"areas of {AREA} jobs")
