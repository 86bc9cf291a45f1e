"""The version of the distribution. Every Python start imports this file: it imports nothing."""

__version__ = "0.1.0"
