"""Threads: the follower of the fact log, and everything that is done at intervals."""
