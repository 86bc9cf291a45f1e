"""Questions about a whole store at once, on Spark: what depends on what, what is used by nobody, what comes late."""
