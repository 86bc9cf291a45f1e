"""Consistent reads and aligned jobs."""
