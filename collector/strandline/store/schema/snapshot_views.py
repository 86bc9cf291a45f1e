"""The view `snapshot_lineage`: the snapshots that runs read and made."""

from strandline.store.schema.conditions import FAILED_BATCH

# All that is known of which snapshot was read or made: ids that came as doubles are matched to the
# table's own (snapshot_id is NULL and approximate_id the double where none fits, or two do), and
# what was only observed gives way to what was stated. A snapshot has one maker: unless writers
# state it themselves, the surest claim counts, then the first (stock listeners report a table's
# last commit again for a statement that has not committed, or has failed). A Delta table that was
# dropped and created anew begins with version 0 again: claims from before that are of another
# table, and of two creations nobody knows which one is meant (CREATE TABLE IF NOT EXISTS is
# reported as one too). barrier is NULL outside streaming.
SNAPSHOT_LINEAGE = """
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id, used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.query_id) AS query_id,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR (used.lossy = 1 AND used.exact_id IS NULL) THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id, taken.lossy,
               taken.dataset_id AS named_id, taken.snapshot_id, taken.from_snapshot_id, taken.query_id,
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
                  AND NOT (maker.rank < 3 AND {made_by_failed})
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
   AND NOT (used.direction = 1 AND used.rank < 3 AND {failed})
""".format(made_by_failed=FAILED_BATCH.format(run="made_by"), failed=FAILED_BATCH.format(run="run"))


def snapshot_lineage_from(uses: str) -> str:
    """Return the query of the view for some rows of snapshot_uses; SQLite reads the view whole."""
    return SNAPSHOT_LINEAGE.replace("FROM snapshot_uses taken", f"FROM ({uses}) taken")
