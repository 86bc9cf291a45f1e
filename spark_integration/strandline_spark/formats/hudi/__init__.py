"""Apache Hudi."""
