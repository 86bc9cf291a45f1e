"""Table formats: one folder or module each.

Behind one contract (`contract`) and one registry (`registry`).
"""
