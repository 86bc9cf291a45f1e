"""The views of runs: their relations and edges, owners, ends, silences and lives.

A run is live if it really started, has not ended, and has not been silent for longer than its
heartbeat timeout at the moment of the query.
"""

from strandline.core.changes.snapshot_claims import STATED
from strandline.store.schema.conditions import (
    CREATED_NOTHING,
    DEFAULT_SILENCE,
    IS_SILENT,
    NOW,
    ONLY_DEFINED,
)

# The one dataset that a name means, for rules that must not depend on the names that a key sees.
_CANONICAL_IDS = "SELECT id AS dataset_id, canonical_id FROM datasets"

# The datasets that runs read and wrote, and the edges that they made, are stored as templates
# (relation_tables.py).
_RELATIONS = """
SELECT used.run_id, relation.direction, relation.dataset_id, relation.creates, used.first_at,
       used.newest_at
  FROM run_templates used
  JOIN template_relations relation ON relation.template_id = used.template_id
"""
_EDGES = """
SELECT used.run_id, edge.sink_id, edge.rule, edge.set_hash, used.newest_at AS at
  FROM run_templates used
  JOIN template_edges edge ON edge.template_id = used.template_id
"""

# A micro-batch that comes as a run of its own (stock Spark listener) belongs to the run and job of
# its streaming query, or, if the query is unknown, to its application.
_RUN_OWNERS = """
SELECT run.id AS run_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0
            THEN query.owner_id
            WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_run_id
            ELSE run.id END AS owner_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0
            THEN coalesce(named.job_id, query.job_id)
            WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_job_id
            ELSE run.job_id END AS job_id,
       CASE WHEN run.announced = 0 THEN query.query_id END AS query_id,
       CASE WHEN run.announced = 0 THEN query.batch_id + 1 END AS barrier
  FROM runs run
  LEFT JOIN run_parents parent ON parent.run_id = run.id
  LEFT JOIN run_queries query ON query.run_id = run.id
  LEFT JOIN runs named ON named.id = query.owner_id
"""

# A run ends by an event of its own, else with its parent, its root, or the runs above these, unless
# an event of its own is later. A streaming query's run has no events of its own.
_SEEN = "CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END"
_RUN_ENDS = """
SELECT run.id AS run_id,
       CASE WHEN run.ended_at IS NOT NULL THEN run.ended_at
            WHEN parent.ended_at >= {seen} THEN parent.ended_at
            WHEN root.ended_at >= {seen} THEN root.ended_at
            WHEN {of_parent} THEN higher.ended_at
            WHEN {of_root} THEN highest.ended_at END AS ended_at,
       CASE WHEN run.ended_at IS NOT NULL THEN run.state
            WHEN parent.ended_at >= {seen} THEN parent.state
            WHEN root.ended_at >= {seen} THEN root.state
            WHEN {of_parent} THEN higher.state
            WHEN {of_root} THEN highest.state ELSE run.state END AS state
  FROM runs run
  LEFT JOIN run_parents link ON link.run_id = run.id
  LEFT JOIN runs parent ON parent.id = link.parent_run_id
  LEFT JOIN runs root ON root.id = link.root_run_id
  LEFT JOIN run_parents above ON above.run_id = link.parent_run_id
  LEFT JOIN runs higher ON higher.id = above.parent_run_id
  LEFT JOIN runs highest ON highest.id = above.root_run_id
""".format(
    seen=_SEEN,
    of_parent="parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0)"
    f" AND higher.ended_at >= {_SEEN}",
    of_root="parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0)"
    f" AND highest.ended_at >= {_SEEN}",
)

_RUN_SILENCES = f"""
SELECT run.id AS run_id,
       CASE WHEN lease.run_id IS NOT NULL
            THEN run.received_at + lease.seconds * 1000000
            WHEN run.child_received_at > run.received_at
            THEN run.child_received_at + silence.micros
            ELSE run.received_at + silence.micros END AS silent_at
  FROM runs run
  LEFT JOIN run_leases lease ON lease.run_id = run.id
 CROSS JOIN (SELECT {DEFAULT_SILENCE} AS micros) silence
"""

# `state` is the run's own (LOST by its owner's silence); the validity is the owner's. A run that
# ended or fell silent before its first START or RUNNING (clocks differ) began when it ended, so
# valid_from is never after valid_to.
_RUN_LIVES = """
SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state
            WHEN finish.ended_at IS NOT NULL THEN finish.state
            WHEN {silent} THEN -1
            ELSE run.state END AS state,
       CASE WHEN coalesce(finish.ended_at, silence.silent_at)
                 < coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
            THEN coalesce(finish.ended_at, silence.silent_at)
            ELSE coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
             END AS valid_from,
       CASE WHEN finish.ended_at IS NOT NULL THEN finish.ended_at
            WHEN {silent} THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL
             AND finish.ended_at IS NULL
             AND NOT {silent} THEN 1 ELSE 0 END AS live,
       run.design AS design
  FROM run_owners owned
  JOIN runs run ON run.id = owned.run_id
  JOIN runs owner ON owner.id = owned.owner_id
  JOIN run_ends finish ON finish.run_id = owned.owner_id
  JOIN run_silences silence ON silence.run_id = owned.owner_id
"""

_RELATION_LIVES = f"""
SELECT life.run_id, life.owner_id, life.job_id, relation.direction,
       named.canonical_id AS dataset_id, relation.dataset_id AS named_id, relation.creates,
       life.state, life.valid_from, life.valid_to, life.live, life.design
  FROM run_relations relation
  JOIN run_lives life ON life.run_id = relation.run_id
  JOIN runs run ON run.id = relation.run_id
  JOIN datasets named ON named.id = relation.dataset_id
 WHERE NOT {CREATED_NOTHING.format(sink="relation", run="run")}
   AND NOT {ONLY_DEFINED.format(sink="relation", run="run", table="named", stated=STATED)}
"""


def run_views(dialect: str) -> dict[str, str]:
    """Return the queries of the views by name, each after those that it selects from."""
    return {
        "canonical_ids": _CANONICAL_IDS,
        "run_relations": _RELATIONS,
        "run_edges": _EDGES,
        "run_owners": _RUN_OWNERS,
        "run_ends": _RUN_ENDS,
        "run_silences": _RUN_SILENCES,
        "run_lives": _RUN_LIVES.format(silent=IS_SILENT.format(now=NOW[dialect])),
        "relation_lives": _RELATION_LIVES,
    }
