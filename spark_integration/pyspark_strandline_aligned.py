"""Spark 4 looks for modules of such names on the path.

`format("strandline_aligned")` needs no registration.
"""

from strandline_spark.sources.aligned_source import AlignedSource as DefaultSource

__all__ = ["DefaultSource"]
