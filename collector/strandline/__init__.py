"""Strandline's collector: OpenLineage events in, lineage by snapshot and barrier out."""

__version__ = "0.1.0"
