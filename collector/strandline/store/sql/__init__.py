"""Plumbing of SQL: engines, upserts, lists of ids, pages, compression, errors of the databases."""
