"""The way of events out of the driver: a bounded outbox, a spool on disk, a circuit breaker."""
