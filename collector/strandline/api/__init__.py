"""The HTTP API: routers by subject, Marquez's API, and the writer of events."""
