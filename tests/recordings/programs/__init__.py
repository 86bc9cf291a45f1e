"""Ordinary Spark programs, without any word about lineage in them."""
