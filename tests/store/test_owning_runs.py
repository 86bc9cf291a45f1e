"""Recent runs are those that own edges: histories found by a soak of `test_any_order.py`."""

import pytest
from sqlalchemy import Engine

from store.test_any_order import NOW, check
from worlds.builders import Json, dataset, event, run_id

QUERIES = {
    run: {"spark_jobDetails": {"jobDescription": f"q<br/>id = {run_id(90 + run)}<br/>batch = 0"}}
    for run in (1, 2, 3)
}
CREATED = dataset("/b", "file", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
MADE = dataset("/b", "file", {"strandline_snapshot": {"snapshotId": "1"}})
OWNING = {
    "a query whose micro-batch is none after all": [
        *(event("RUNNING", run, "one", run, inputs=[dataset("/a", "file")], facets=QUERIES[run]) for run in (1, 2)),
        event("RUNNING", 3, "one", 3, outputs=[dataset("/a", "file")], facets=QUERIES[3]),
        event("FAIL", 2, "two", 4, facets={"strandline_heartbeat": {"timeoutSeconds": 36_000}}),
        event("COMPLETE", 7, "one", 5, inputs=[dataset("/c", "file")]),
    ],
    "tables that were never made": [
        *(event("COMPLETE", run, "one", run, outputs=[dataset("/a", "file")]) for run in (1, 2)),
        *(event("FAIL", run, "one", run, outputs=[CREATED]) for run in (3, 7)),
    ],
    "an application that is none of the job's": [
        event("COMPLETE", 1, "one", 1, inputs=[dataset("/a", "file")]),
        event("COMPLETE", 2, "one", 2, inputs=[dataset("/a", "file")]),
        event("START", 8, "one", 3),
        event("COMPLETE", 7, "one", 4, outputs=[CREATED], facets={"parent": {"run": {"runId": run_id(8)}, "job": {"namespace": "tests", "name": "one"}}}),
        event("COMPLETE", 3, "one", 5, inputs=[dataset("/a", "file")], facets=QUERIES[3]),
    ],
    "a failed run that made its table under another name": [
        event("RUNNING", 1, "one", 1, outputs=[MADE]),
        event("FAIL", 1, "one", 2, outputs=[dataset("/a", "file", symlinks={"identifiers": [{"namespace": "file", "name": "/b", "type": "TABLE"}]})]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("history", OWNING.values(), ids=OWNING)
def test_recent_runs_of_a_job_are_those_that_own_edges(engine: Engine, history: list[Json]) -> None:
    """A run that owns no edges does not count, whichever job it was reported for."""
    check(engine, [(one, NOW) for one in history], 1, [2])
