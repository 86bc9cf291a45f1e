"""What is kept: the tables and views of the two databases."""
