"""Carrying plans out on real tables: rollbacks and checkpoint folders, through the catalogs that the user names."""
