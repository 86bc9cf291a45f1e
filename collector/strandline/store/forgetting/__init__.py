"""Forgetting a job, a dataset, a run, a namespace or an event.

Everywhere in the store, as if it had never come.
"""
