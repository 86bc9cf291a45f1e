"""A statement has the job name that its session had at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spark_lake.running import events_of
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_statements_of_busy_threads_keep_their_own_names(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    conf = {"spark.strandline.job.name": "app {output}"}
    events = events_of("names.py", tmp_path, "plain", conf=conf, jvm=warm_jvm)

    written = {
        (event["job"]["name"], event["outputs"][0]["name"].rpartition("/")[2])
        for event in events
        if event["outputs"]
    }
    own = {
        (f"{thread}{number}", f"{thread}{number}")
        for thread in ("left", "right")
        for number in range(8)
    }
    assert written == own | {("app last", "last")}
