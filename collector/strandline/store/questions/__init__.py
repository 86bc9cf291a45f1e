"""Questions about lineage that take more than one walk.

What breaks, which way, what changed, who feeds whom.
"""
