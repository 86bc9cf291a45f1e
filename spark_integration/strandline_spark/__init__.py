"""Strandline's emitter for PySpark."""

__version__ = "0.1.0"
