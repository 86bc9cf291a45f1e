"""Runs ordinary PySpark programs under the emitter, switched on by conf alone, and takes the events that they cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy import jars
from spark_lake import SPARK, formats, settings

JOBS = Path(__file__).parent / "jobs"
SCALA = "2.12" if SPARK == "3.5" else "2.13"
STOCK = {"spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener"}
SECONDS = 900  # a slow machine that does other things too

Event = dict[str, Any]


def events_of(
    job: str, folder: Path, kind: str, *arguments: str, conf: Mapping[str, str] | None = None, stock: bool = False
) -> list[Event]:
    """Run a program of `jobs` to its end on tables of one format, and give its events in the order of their writing.

    `stock`: under the stock OpenLineage listener instead of our emitter.
    """
    told = folder / f"{Path(job).stem}.events"
    write_conf(folder, told, kind, conf or {}, stock)
    environ = {**os.environ, "SPARK_CONF_DIR": str(folder / "conf"), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(JOBS / job), str(folder), kind, *arguments],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{job}: {done.stderr[-8000:]}"
    return [json.loads(line) for line in told.read_text().splitlines()]


def write_conf(folder: Path, told: Path, kind: str, more: Mapping[str, str], stock: bool) -> None:
    """The spark-defaults.conf of a lake with one format, and of who tells of it."""
    chosen = [kind] if kind in formats() else []
    teller = STOCK if stock else {"spark.strandline.enabled": "true", "spark.strandline.spool.dir": f"{folder}/spool"}
    sets = [f"{name}-{SPARK}" for name in chosen] + ([f"openlineage-{SCALA}"] if stock else [])
    conf = {
        **settings(folder, chosen),
        "spark.master": "local[3]",
        "spark.ui.showConsoleProgress": "false",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(told),
        **({"spark.jars": jars.comma_list(sets)} if sets else {}),
        **teller,
        **more,
    }
    (folder / "conf").mkdir(exist_ok=True)
    lines = [f"{key} {value}" for key, value in conf.items()]
    (folder / "conf" / "spark-defaults.conf").write_text("\n".join(lines) + "\n")


@contextmanager
def rival(folder: Path, kind: str) -> Iterator[None]:
    """Another writer, which makes the tables first and goes on until the block is over."""
    lake = JOBS.parent
    environ = os.environ | {"PYTHONPATH": os.pathsep.join((str(lake.parent.parent), str(lake.parent)))}
    command = [sys.executable, str(lake / "rival.py"), str(folder), kind]
    with subprocess.Popen(command, cwd=folder, env=environ) as process:
        try:
            yield
        finally:
            (folder / "over").touch()
            process.wait(120)
    assert process.returncode == 0


def outputs(events: Sequence[Event], table: str) -> list[tuple[Event, dict[str, Any]]]:
    """The events that wrote a table, each with that output."""
    return [(event, output) for event in events for output in event["outputs"] if output["name"].endswith(table)]


def snapshot(dataset: dict[str, Any]) -> dict[str, Any]:
    """The snapshot facet of an input or output; empty if it has none."""
    facets = dataset.get("inputFacets") or dataset.get("outputFacets") or {}
    found: dict[str, Any] = facets.get("strandline_snapshot", {})
    return found
