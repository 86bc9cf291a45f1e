"""The transports: Kafka, HTTP, files, several at once."""
