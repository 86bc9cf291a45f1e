"""Every call into the JVM that belongs to no table format."""
