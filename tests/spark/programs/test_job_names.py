"""A statement bears the name that its session had when the statement started."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spark_lake.running import events_of

pytestmark = pytest.mark.spark


def test_statements_of_busy_threads_bear_their_own_names(tmp_path: Path) -> None:
    events = events_of("names.py", tmp_path, "plain", conf={"spark.strandline.job.name": "app {output}"})

    written = {
        (event["job"]["name"], event["outputs"][0]["name"].rpartition("/")[2]) for event in events if event["outputs"]
    }
    own = {(f"{thread}{number}", f"{thread}{number}") for thread in ("left", "right") for number in range(8)}
    assert written == own | {("app last", "last")}
