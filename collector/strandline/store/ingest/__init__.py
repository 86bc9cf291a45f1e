"""The write path: records in, rows out, in the caller's transaction."""
