"""Spark 4 looks for modules of such names on the path.

`format("strandline_lineage")` needs no registration.
"""

from strandline_spark.sources.lineage_source import LineageSource as DefaultSource

__all__ = ["DefaultSource"]
