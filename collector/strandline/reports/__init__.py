"""Reports about the whole graph, as Spark SQL over the published lineage tables."""
