"""Forward-only migrations; connect.migrate runs them."""
