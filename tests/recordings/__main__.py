"""Make recordings anew: `PYTHONPATH=tests:. python -m recordings [NAME...]`.

See README.md beside this file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy import jars
from fixtures.spark_lake import settings
from fixtures.spark_lake.running import write_conf
from recordings import FILES
from recordings.index import RECORDINGS
from recordings.recording import Application, Recording
from recordings.snapshots import snapshots_in

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


def main(names: Sequence[str]) -> None:
    """Make the named recordings, or all."""
    FILES.mkdir(exist_ok=True)
    for name in names or RECORDINGS:
        with tempfile.TemporaryDirectory(prefix="strandline-recording-") as folder:
            make(name, RECORDINGS[name], Path(folder))


def make(name: str, recording: Recording, folder: Path) -> None:
    """Run a recording's applications under the stock listener and keep its events and what was true."""
    for number, application in enumerate(recording.applications):
        write_conf(folder, conf_of(folder, number, recording.format))
        run(name, number, application, folder)
    events = [
        (folder / f"{number}.events").read_text() for number in range(len(recording.applications))
    ]
    scrubbed = scrub("".join(events), folder)
    with gzip.GzipFile(FILES / f"{name}.jsonl.gz", "wb", 9, mtime=0) as file:
        file.write(scrubbed.encode())
    truth = FILES / f"{name}.json"
    stated = json.loads(truth.read_text())
    truth.write_text(json.dumps(truth_of(stated, recording, folder), indent=1) + "\n")
    print(
        name,
        scrubbed.count("\n"),
        "events",
        (FILES / f"{name}.jsonl.gz").stat().st_size,
        "bytes",
        flush=True,
    )


def conf_of(folder: Path, number: int, kind: str) -> dict[str, str]:
    """Return the conf of an ordinary user.

    A Hadoop catalog with its cache, and the listener into a file.
    """
    sets = [f"{kind}-4.1", "openlineage-2.13"]
    conf = {
        **settings(folder, [kind]),
        "spark.master": "local[2]",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraClassPath": jars.comma_list(sets).replace(",", ":"),
        "spark.openlineage.namespace": "lakehouse",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(folder / f"{number}.events"),
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
    }
    if kind == "iceberg":
        del conf["spark.sql.catalog.lake.uri"], conf["spark.sql.catalog.lake.jdbc.schema-version"]
        conf |= {
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.cache-enabled": "true",
        }
    return conf


def run(name: str, number: int, application: Application, folder: Path) -> None:
    """Run one application to its end, and see that it ends as it should."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    environ = {
        **os.environ,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "recordings.application", name, str(number), str(folder)]
    done = subprocess.run(
        command,
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if (done.returncode == 0) != application.ends_well:
        raise SystemExit(f"{name} {number} ended with {done.returncode}: {done.stderr[-4000:]}")


def scrub(events: str, folder: Path) -> str:
    """Take this machine out of the events.

    Its folders, also where they are in the names of jobs, and its name.
    """
    in_names = re.sub(r"\W+", "_", str(folder)).strip("_")
    places = {str(folder): "/data", in_names: "data", str(ROOT): "/opt/strandline"}
    places |= {f'"{socket.gethostname()}"': '"driver"'}
    for place, instead in places.items():
        events = events.replace(place, instead)
    return events


def truth_of(stated: Mapping[str, Any], recording: Recording, folder: Path) -> Mapping[str, Any]:
    """Return the truth of a recording.

    What is stated by hand in its file stays; the rest is what the applications have just done.
    """
    noted = folder / "queries.jsonl"
    lines = noted.read_text().splitlines() if noted.exists() else []
    queries = [json.loads(line) for line in lines]
    ends = {query["name"]: query for query in stated["queries"]}
    return {
        **stated,
        "does": [application.program.__doc__ for application in recording.applications],
        "applications": [
            {"name": one.name, "endsWell": one.ends_well} for one in recording.applications
        ],
        "queries": [ends[query["name"]] | query for query in queries],
        "snapshots": snapshots_in(folder),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
