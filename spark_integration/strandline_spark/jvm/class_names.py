"""Names of Spark's classes that are relied on in more than one place."""

from __future__ import annotations

from collections.abc import Mapping

# By class: where the plan is that did the work of a write. One may be in the other.
WITHIN: Mapping[str, str] = {
    "org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec": "executedPlan",
    "org.apache.spark.sql.execution.CommandResultExec": "commandPhysicalPlan",
    "org.apache.spark.sql.execution.adaptive.ResultQueryStageExec": "plan",  # since Spark 4, around what has a shuffle
}
