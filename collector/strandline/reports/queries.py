"""The reports: each is a query over the published edges, and `reach`.

`reach` has a row (start, node) for each dataset and each dataset that is made from it, at any
distance. A dataset that is made from itself has one too.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Report(NamedTuple):
    """A query, what its rows are, and whether it needs `reach`; `{before}` is a moment in UTC."""

    about: str
    sql: str
    needs_reach: bool = False


_IMPACT = """
WITH readers AS (
  SELECT source AS dataset, COUNT(DISTINCT job) AS readers
    FROM job_edges
   WHERE source IS NOT NULL
   GROUP BY source),
below AS (
  SELECT start AS dataset, COUNT(*) AS datasets
    FROM reach
   WHERE node <> start
   GROUP BY start)
SELECT dataset, COALESCE(below.datasets, 0) AS downstream, readers
  FROM readers
  LEFT JOIN below USING (dataset)
 ORDER BY downstream DESC, readers DESC, dataset
"""

_JOBS = """
WITH only_writers AS (
  SELECT target AS dataset, MIN(job) AS job
    FROM job_edges
   WHERE target IS NOT NULL
   GROUP BY target
  HAVING COUNT(DISTINCT job) = 1),
depending AS (
  SELECT job, dataset FROM only_writers
   UNION
  SELECT job, node FROM only_writers JOIN reach ON reach.start = only_writers.dataset)
SELECT job, COUNT(*) AS datasets
  FROM depending
 GROUP BY job
 ORDER BY datasets DESC, job
"""

_COLUMNS = """
SELECT source AS dataset,
       source_column AS column,
       COUNT(DISTINCT target, target_column) AS columns,
       COUNT(DISTINCT CASE WHEN dependency = 'direct' THEN target END,
                      CASE WHEN dependency = 'direct' THEN target_column END) AS by_value,
       COUNT(DISTINCT target) AS datasets
  FROM column_edges
 WHERE source_column <> '' AND dependency <> 'opaque'
 GROUP BY source, source_column
 ORDER BY columns DESC, by_value DESC, dataset, column
"""

_UNREAD = """
WITH writers AS (
  SELECT target AS dataset, job, MAX(written_at) AS written_at
    FROM job_edges
   WHERE target IS NOT NULL
   GROUP BY target, job),
others AS (
  SELECT DISTINCT read.source AS dataset
    FROM job_edges read
    LEFT ANTI JOIN writers ON writers.dataset = read.source AND writers.job = read.job
   WHERE read.source IS NOT NULL)
SELECT dataset, COUNT(*) AS writers, MAX(written_at) AS written_at
  FROM writers
  LEFT ANTI JOIN others USING (dataset)
 GROUP BY dataset
 ORDER BY dataset
"""

_STALE = """
WITH readers AS (
  SELECT source AS dataset, COUNT(DISTINCT job) AS readers, MAX(read_at) AS read_at
    FROM job_edges
   WHERE source IS NOT NULL
   GROUP BY source),
writes AS (
  SELECT target AS dataset, MAX(written_at) AS written_at
    FROM job_edges
   WHERE target IS NOT NULL
   GROUP BY target)
SELECT dataset, written_at, readers, read_at
  FROM readers
  JOIN writes USING (dataset)
 WHERE written_at < TIMESTAMP '{before}'
 ORDER BY written_at, dataset
"""

REPORTS: Mapping[str, Report] = {
    "impact": Report(
        "datasets that are read, by how many others are made from them", _IMPACT, needs_reach=True
    ),
    "jobs": Report(
        "jobs by how many datasets need what they alone write, their own included",
        _JOBS,
        needs_reach=True,
    ),
    "columns": Report("columns by how many columns are made from them directly", _COLUMNS),
    "unread": Report("datasets that no job reads but those that write them", _UNREAD),
    "stale": Report("datasets that jobs read, and that were last written before --before", _STALE),
}
