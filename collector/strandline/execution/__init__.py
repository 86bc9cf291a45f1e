"""Carrying plans out on real tables.

Rollbacks and checkpoint folders, through the catalogs that the user names.
"""
