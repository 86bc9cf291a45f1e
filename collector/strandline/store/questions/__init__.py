"""Questions about lineage that take more than one walk.

Impact, paths, changes, and which namespaces feed which.
"""
