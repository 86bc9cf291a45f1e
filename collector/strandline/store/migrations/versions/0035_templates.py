"""Templates: what many runs read, wrote and made into each other alike is stored once, and each run names it. The SQL is frozen here.

What is stored stays as it is, a row each: servers of the version before may go on beside this one and look for it there. Two
views show what there is, and `strandline migrate --templates` moves it, and the views, once none of them is left. A store
that holds nothing keeps templates from the start.
"""

from alembic import op

revision = "0035"
down_revision = "0034"

TABLES = (
    """CREATE TABLE template_relations (
    template_id BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    creates SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_template_relations PRIMARY KEY (template_id, direction, dataset_id)
){end}""",
    """CREATE TABLE template_edges (
    template_id BIGINT NOT NULL,
    sink_id BIGINT NOT NULL,
    rule SMALLINT NOT NULL,
    set_hash {bytes} NOT NULL,
    CONSTRAINT pk_template_edges PRIMARY KEY (template_id, sink_id, rule)
){end}""",
    """CREATE TABLE run_templates (
    run_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    CONSTRAINT pk_run_templates PRIMARY KEY (run_id, template_id)
){end}""",
    "CREATE INDEX ix_template_relations_dataset_id ON template_relations (dataset_id)",
    "CREATE INDEX ix_template_edges_sink_id ON template_edges (sink_id)",
    "CREATE INDEX ix_template_edges_set_hash ON template_edges (set_hash)",
    "CREATE INDEX ix_run_templates_template_id ON run_templates (template_id)",
)
EMPTY = (
    "SELECT NOT EXISTS (SELECT 1 FROM datasets) AND NOT EXISTS (SELECT 1 FROM jobs) AND NOT EXISTS (SELECT 1 FROM runs)"
)
KEPT = "INSERT INTO store_settings (key, value) VALUES ('templates', '1')"
_RELATIONS = {
    True: """SELECT used.run_id, relation.direction, relation.dataset_id, relation.creates, used.first_at, used.newest_at
  FROM run_templates used
  JOIN template_relations relation ON relation.template_id = used.template_id""",
    False: "SELECT run_id, direction, dataset_id, creates, first_at, newest_at FROM relations",
}
_EDGES = {
    True: """SELECT used.run_id, edge.sink_id, edge.rule, edge.set_hash, used.newest_at AS at
  FROM run_templates used
  JOIN template_edges edge ON edge.template_id = used.template_id""",
    False: "SELECT run_id, sink_id, rule, set_hash, at FROM edge_uses",
}
_RELATION_LIVES = """
SELECT life.run_id, life.owner_id, life.job_id, relation.direction, named.canonical_id AS dataset_id,
       relation.dataset_id AS named_id, relation.creates, life.state, life.valid_from, life.valid_to, life.live,
       life.design
  FROM run_relations relation
  JOIN run_lives life ON life.run_id = relation.run_id
  JOIN runs run ON run.id = relation.run_id
  JOIN datasets named ON named.id = relation.dataset_id
 WHERE NOT (relation.creates = 1 AND run.state IN (3, 5) AND run.streaming = 0)
"""
_SNAPSHOT_LINEAGE = """
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id, used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.generation) AS generation,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR (used.lossy = 1 AND used.exact_id IS NULL) THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id, taken.lossy,
               taken.dataset_id AS named_id, taken.snapshot_id, taken.from_snapshot_id, taken.generation,
               taken.rank, taken.order_at, taken.at,
               CASE WHEN taken.lossy = 1 THEN (
                    SELECT CASE WHEN min(known.snapshot_id) = max(known.snapshot_id) THEN min(known.snapshot_id) END
                      FROM (SELECT rounded.id > 0 AND length(CAST(rounded.id - 512 AS TEXT)) = length(CAST(rounded.id + 512 AS TEXT))
                                   AS in_order, rounded.id
                              FROM (SELECT CASE WHEN taken.lossy = 1 THEN CAST(taken.snapshot_id AS NUMERIC) END AS id) rounded) near
                      JOIN datasets other ON other.canonical_id = named.canonical_id
                      JOIN snapshots known ON known.dataset_id = other.id
                       AND known.snapshot_id >= CASE WHEN near.in_order THEN CAST(near.id - 512 AS TEXT) ELSE '' END
                       AND known.snapshot_id <= CASE WHEN near.in_order THEN CAST(near.id + 512 AS TEXT) ELSE 'z' END
                     WHERE known.approximate = CASE WHEN taken.lossy = 1
                                                    THEN CAST(taken.snapshot_id AS DOUBLE PRECISION) END) END AS exact_id,
               rank() OVER (PARTITION BY taken.run_id, taken.barrier, taken.direction, named.canonical_id
                            ORDER BY CASE WHEN taken.rank > 1 THEN 2 ELSE 1 END DESC,
                                     CASE WHEN taken.rank > 1 THEN 0 ELSE taken.order_at END DESC) AS standing
          FROM snapshot_uses taken
          JOIN datasets named ON named.id = taken.dataset_id
         WHERE NOT (taken.direction = 1 AND taken.rank < 3 AND EXISTS (
               SELECT 1 FROM snapshot_uses maker JOIN datasets other ON other.id = maker.dataset_id
                 JOIN runs made_by ON made_by.id = maker.run_id
                WHERE other.canonical_id = named.canonical_id AND maker.snapshot_id = taken.snapshot_id
                  AND maker.direction = 1 AND maker.run_id <> taken.run_id
                  AND NOT (maker.rank < 3 AND made_by.state = 5 AND made_by.streaming = 0)
                  AND (maker.rank > taken.rank OR (maker.rank = taken.rank AND (maker.at < taken.at
                       OR (maker.at = taken.at AND maker.run_id < taken.run_id))))))
           AND NOT (taken.direction = 1 AND EXISTS (
               SELECT 1 FROM snapshot_uses born JOIN datasets other ON other.id = born.dataset_id
                 JOIN run_relations creating ON creating.run_id = born.run_id AND creating.direction = 1
                                        AND creating.dataset_id = born.dataset_id
                 JOIN runs born_by ON born_by.id = born.run_id
                WHERE other.canonical_id = named.canonical_id AND born.snapshot_id = '0' AND born.direction = 1
                  AND born.run_id <> taken.run_id AND creating.creates = 1 AND born_by.state = 4 AND born_by.streaming = 0
                  AND (born.at > taken.at OR (taken.rank < 3 AND taken.snapshot_id = '0'))))) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
   AND NOT (used.direction = 1 AND used.rank < 3 AND run.state = 5 AND run.streaming = 0)
"""


def upgrade() -> None:
    """Make the tables and the two views, and let the views that asked for relations ask these."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    form = {"bytes": "BLOB", "end": " WITHOUT ROWID"} if sqlite else {"bytes": "BYTEA", "end": ""}
    for statement in TABLES:
        op.execute(statement.format(**form))
    if not sqlite:
        op.execute("ALTER TABLE run_templates SET (fillfactor = 80)")  # rows get newer times
    templates = bool(op.get_bind().exec_driver_sql(EMPTY).scalar())
    if templates:
        op.execute(KEPT)
    op.execute(f"CREATE VIEW run_relations AS {_RELATIONS[templates]}")
    op.execute(f"CREATE VIEW run_edges AS {_EDGES[templates]}")
    for name, query in (("relation_lives", _RELATION_LIVES), ("snapshot_lineage", _SNAPSHOT_LINEAGE)):
        if sqlite:
            op.execute(f"DROP VIEW {name}")
        op.execute(f"CREATE {'' if sqlite else 'OR REPLACE '}VIEW {name} AS {query.strip()}")
