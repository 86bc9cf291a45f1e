"""The tables and views of the two databases."""
