"""FLIP-314's listeners, and lineage that users state themselves."""
