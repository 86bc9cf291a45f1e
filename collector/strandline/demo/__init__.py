"""`make demo`: the bank on real parts."""
