"""The index of the search.

What is looked for in names, tags, columns and SQL texts, in pages that are read whole.
"""
