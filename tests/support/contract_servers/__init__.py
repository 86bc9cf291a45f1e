"""Catalogs as their documents say that they behave, each a real HTTP server on loopback that can be told to misbehave."""
