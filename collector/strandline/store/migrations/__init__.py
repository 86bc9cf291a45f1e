"""Forward-only migrations; `store/sql/engine.migrate` runs them."""
