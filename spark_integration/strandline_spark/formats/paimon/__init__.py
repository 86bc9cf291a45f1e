"""Apache Paimon."""
