"""Tables behind JDBC, and queries in place of tables."""
