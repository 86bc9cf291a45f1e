"""The snapshots that one run read and made, the newest of each dataset.

What the page of a run shows.
"""

from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, TextClause, bindparam, text

from strandline.store.schema.snapshot_views import snapshot_lineage_from

MOST_EACH = 5
MOST_USES = (
    500  # a stream that ran for a month has made millions: only its newest barriers are looked at
)


def run_snapshots(
    connection: Connection, run: int, direction: int
) -> dict[int, list[dict[str, Any]]]:
    """By the id of the dataset as the run named it.

    At most MOST_EACH snapshots, the newest barrier first.

    A snapshot that was only reported as a rounded number and fits none of the table has no id, so
    it is not among them.
    """
    facets_of: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute(_uses(), {"run": run, "direction": direction}):
        of_dataset = facets_of.setdefault(row.named_id, [])
        if len(of_dataset) < MOST_EACH:
            of_dataset.append(
                {
                    "snapshotId": row.snapshot_id,
                    "barrierId": row.barrier,
                    "observed": bool(row.observed),
                }
            )
    return facets_of


@cache
def _uses() -> TextClause:
    newest = f"""
        SELECT * FROM snapshot_uses WHERE run_id = :run AND direction = :direction
         ORDER BY barrier DESC LIMIT {MOST_USES}"""
    query = f"""
        SELECT named_id, snapshot_id, barrier, observed
          FROM ({snapshot_lineage_from(newest)}) AS used
         WHERE snapshot_id IS NOT NULL ORDER BY told_barrier DESC, snapshot_id"""
    return text(query).bindparams(
        bindparam("run", type_=BigInteger), bindparam("direction", type_=Integer)
    )
