"""The questions that HTTP and commands ask, one model each: names, checks and help."""
