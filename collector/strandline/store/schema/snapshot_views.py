"""The view `snapshot_lineage`: the snapshots that runs read and made, with the best known ids.

`snapshot_id` is NULL if the id came as a double that fits none or two of the table's snapshots;
then `approximate_id` is the double. `barrier` is NULL outside streaming.
"""

from strandline.store.schema.conditions import FAILED_BATCH

# An id that came as a double is matched to the table's own ids, which are at most 512 away. If
# these have as many digits, their order as text is that of numbers, and the key finds them.
_EXACT_ID = """
CASE WHEN taken.lossy = 1 THEN (
     SELECT CASE WHEN min(known.snapshot_id) = max(known.snapshot_id)
                 THEN min(known.snapshot_id) END
       FROM (SELECT rounded.id > 0
                    AND length(CAST(rounded.id - 512 AS TEXT))
                        = length(CAST(rounded.id + 512 AS TEXT)) AS in_order,
                    rounded.id
               FROM (SELECT CASE WHEN taken.lossy = 1
                                 THEN CAST(taken.snapshot_id AS NUMERIC) END AS id) rounded) near
       JOIN datasets other ON other.canonical_id = named.canonical_id
       JOIN snapshots known ON known.dataset_id = other.id
        AND known.snapshot_id
            >= CASE WHEN near.in_order THEN CAST(near.id - 512 AS TEXT) ELSE '' END
        AND known.snapshot_id
            <= CASE WHEN near.in_order THEN CAST(near.id + 512 AS TEXT) ELSE 'z' END
      WHERE known.approximate = CASE WHEN taken.lossy = 1
                                     THEN CAST(taken.snapshot_id AS DOUBLE PRECISION) END) END"""

# A stated id comes before an observed one; of observed ones the greatest `order_at` counts.
_STANDING = """
rank() OVER (PARTITION BY taken.run_id, taken.barrier, taken.direction, named.canonical_id
             ORDER BY CASE WHEN taken.rank > 1 THEN 2 ELSE 1 END DESC,
                      CASE WHEN taken.rank > 1 THEN 0 ELSE taken.order_at END DESC)"""

# A rollback of a Paimon table gives its later numbers out again. What was reported before the
# snapshot of that number was committed is of the earlier one.
_IS_OF_AN_EARLIER_SNAPSHOT = """
EXISTS (
      SELECT 1
        FROM snapshots again
       WHERE again.dataset_id = {use}.dataset_id
         AND again.snapshot_id = {use}.snapshot_id
         AND again.format = 'paimon'
         AND again.committed_at > {use}.at)"""

# A snapshot has one maker. Unless its writer states it, the surest claim counts, then the first:
# stock listeners report a table's last commit again for a statement that has not committed.
_HAS_ANOTHER_MAKER = f"""
taken.direction = 1 AND taken.rank < 3 AND EXISTS (
      SELECT 1
        FROM snapshot_uses maker
        JOIN datasets other ON other.id = maker.dataset_id
        JOIN runs made_by ON made_by.id = maker.run_id
       WHERE other.canonical_id = named.canonical_id
         AND maker.snapshot_id = taken.snapshot_id
         AND maker.direction = 1
         AND maker.run_id <> taken.run_id
         AND NOT (maker.rank < 3 AND {FAILED_BATCH.format(run="made_by")})
         AND NOT {_IS_OF_AN_EARLIER_SNAPSHOT.format(use="maker")}
         AND (maker.rank > taken.rank
              OR (maker.rank = taken.rank
                  AND (maker.at < taken.at
                       OR (maker.at = taken.at AND maker.run_id < taken.run_id)))))"""

# A Delta table that was dropped and created again begins with version 0 again, so earlier claims
# are of another table. Of two creations nobody knows which is meant: CREATE TABLE IF NOT EXISTS is
# reported as one, too.
_IS_OF_AN_EARLIER_TABLE = """
taken.direction = 1 AND EXISTS (
      SELECT 1
        FROM snapshot_uses born
        JOIN datasets other ON other.id = born.dataset_id
        JOIN run_relations creating ON creating.run_id = born.run_id
         AND creating.direction = 1
         AND creating.dataset_id = born.dataset_id
        JOIN runs born_by ON born_by.id = born.run_id
       WHERE other.canonical_id = named.canonical_id
         AND born.snapshot_id = '0'
         AND born.direction = 1
         AND born.run_id <> taken.run_id
         AND creating.creates = 1
         AND born_by.state = 4
         AND born_by.streaming = 0
         AND (born.at > taken.at OR (taken.rank < 3 AND taken.snapshot_id = '0')))"""

SNAPSHOT_LINEAGE = f"""
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id,
       used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier
            WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.query_id) AS query_id,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL
            THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR used.earlier OR (used.lossy = 1 AND used.exact_id IS NULL)
            THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.flags, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id,
               taken.lossy, taken.dataset_id AS named_id, taken.snapshot_id,
               taken.from_snapshot_id, taken.query_id, taken.rank, taken.order_at, taken.at,
               taken.flags, {_EXACT_ID} AS exact_id,
               {_IS_OF_AN_EARLIER_SNAPSHOT.format(use="taken")} AS earlier,
               {_STANDING} AS standing
          FROM snapshot_uses taken
          JOIN datasets named ON named.id = taken.dataset_id
         WHERE NOT ({_HAS_ANOTHER_MAKER})
           AND NOT ({_IS_OF_AN_EARLIER_TABLE})) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
   AND NOT (used.direction = 1 AND used.earlier)
   AND NOT (used.direction = 1 AND used.rank < 3 AND {FAILED_BATCH.format(run="run")})
"""


def snapshot_lineage_from(uses: str) -> str:
    """Return the query of the view for some rows of snapshot_uses; SQLite reads the view whole."""
    return SNAPSHOT_LINEAGE.replace("FROM snapshot_uses taken", f"FROM ({uses}) taken")
