"""Ways in which events arrive besides HTTP: Kafka's topics and files; and the dead letters."""
