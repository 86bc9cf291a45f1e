"""Sending the lineage on to other catalogs.

One outbox in the store, one cursor a target, one file a target.
"""
