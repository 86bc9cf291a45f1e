"""The graph that a serving process keeps in memory.

What changed, what is kept, and answers from it.
"""
