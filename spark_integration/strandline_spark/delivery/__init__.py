"""How events leave the driver: a bounded outbox, a spool on disk, a circuit breaker."""
