"""The values that switch something on in Spark conf."""

ON = frozenset({"true", "1", "yes"})
