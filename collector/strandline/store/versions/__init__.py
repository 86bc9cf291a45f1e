"""The log of facts that the model of versions is folded from, and what answers read."""
