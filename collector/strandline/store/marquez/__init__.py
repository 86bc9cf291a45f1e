"""What the Marquez-compatible API asks of the store, where the catalog has no answer of the same form."""
