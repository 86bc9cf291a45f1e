"""The wire: OpenLineage's events and facets as types, names, times and run states."""
