"""Recordings: past answers equal those of a collector at that moment.

One store has heard of everything; another only of the events up to the moment. Streams are not
here: which query a micro-batch belongs to is told by its later events, and then the answer about
the past is the better one.
"""

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, select

from store.recordings.conftest import Heard
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_of, node_text
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.questions.run_graph import run_graph
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import runs

NAMES = ["evolved", "ledger", "dbt"]
OTHER_NAMES = ["delta_again", "delta_changes", "merge_after_ctas", "time_travel", "airflow"]
SLOW_NAMES = [pytest.param(name, marks=pytest.mark.slow) for name in OTHER_NAMES]

Edges = list[tuple[Any, ...]]


def edges_of(answer: dict[str, Any]) -> Edges:
    """The edges of an answer, with what an edge of runs or of columns says of itself."""
    said = ("dependency", "dataset", "snapshotId", "rule")
    return sorted(
        (one["source"], one["target"], *(str(one.get(key)) for key in said))
        for one in answer["edges"]
    )


def answers(
    connection: Connection, tables: list[str], of_runs: list[str], moment: datetime
) -> dict[str, Edges]:
    """The lineage of these tables, whole and by column, and what these runs stand on, as it was at the moment."""
    view = View(micros_of(moment), past=True)
    found = {}
    for table in tables:
        asked = Question(node_of(connection, table), view, Direction.BOTH, 20)
        found[table] = edges_of(lineage_of(connection, asked))
        found[f"columns of {table}"] = edges_of(column_lineage_of(connection, asked))
    return found | {run: edges_of(run_graph(connection, {"runId": run}, view)) for run in of_runs}


@pytest.mark.parametrize("name", [*NAMES, *SLOW_NAMES])
def test_past_answers_equal_the_answers_of_that_moment(heard: Heard, name: str) -> None:
    for moment, then, whole in heard(name):
        with then.connect() as before, whole.connect() as after:
            own = select(datasets.c.namespace, datasets.c.name).where(
                datasets.c.id == datasets.c.canonical_id
            )
            tables = [node_text("dataset", *row) for row in before.execute(own)]
            of_runs = list(
                before.scalars(
                    select(runs.c.run_id).where(runs.c.newest_at.is_not(None), runs.c.design == 0)
                )
            )
            expected = answers(before, tables, of_runs, moment)

            assert any(expected.values())
            assert answers(after, tables, of_runs, moment) == expected
