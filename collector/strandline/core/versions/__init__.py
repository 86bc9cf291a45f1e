"""Consistent versions: a model of barriers, folded from facts, and the answers from it."""
