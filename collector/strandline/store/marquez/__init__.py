"""Queries of the Marquez-compatible API for which the catalog has no answer of that form."""
