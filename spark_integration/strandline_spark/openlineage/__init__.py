"""A `Statement` as an OpenLineage RunEvent."""
