"""The graph that a serving process keeps in memory: what changed, what is kept, and answers from it."""
