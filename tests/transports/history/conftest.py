"""Stores of the tests of archives."""

from fixtures.sqlite_first import database_url, own_database_url

__all__ = ["database_url", "own_database_url"]
