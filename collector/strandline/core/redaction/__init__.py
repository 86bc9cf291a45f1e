"""Redaction of texts and JSON: secrets are hidden by their name, form or place."""
