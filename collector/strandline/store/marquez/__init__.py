"""The store's queries for the Marquez-compatible API, where the catalog has no answer of the
same form.
"""
