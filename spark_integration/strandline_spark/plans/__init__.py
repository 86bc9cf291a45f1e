"""Plans of Spark, read into `Statement`s: see `reader`."""

from strandline_spark.plans.reader import PlanReader, UnreadablePlanError

__all__ = ["PlanReader", "UnreadablePlanError"]
