"""The log of facts that the model of versions is folded from.

And what answers need of the store.
"""
