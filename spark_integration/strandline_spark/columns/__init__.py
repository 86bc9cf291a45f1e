"""Column lineage of a plan, resolved from its leaves up."""
