"""What switches something on in Spark conf, everywhere."""

ON = frozenset({"true", "1", "yes"})
