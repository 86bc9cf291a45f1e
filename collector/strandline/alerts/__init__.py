"""Alerts of the versions model: their conditions, their outbox, their webhooks."""
