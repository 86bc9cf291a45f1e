"""A plan, its formats and its columns, read into a `Statement`."""
