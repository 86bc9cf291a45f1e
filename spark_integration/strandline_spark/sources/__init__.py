"""Data sources in Python, for Spark 4.0 and newer.

What the collector knows, as tables of Spark SQL.
"""
