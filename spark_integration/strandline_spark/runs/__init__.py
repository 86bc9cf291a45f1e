"""Spark's events as runs: batch statements, streaming queries, the application."""
