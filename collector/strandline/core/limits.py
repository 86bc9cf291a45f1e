"""Bounds that the API, the command line and the store share."""

MOST_OF_DATABASE = 50_000  # nodes of a graph
