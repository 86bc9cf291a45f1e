"""The migrations, oldest first; a released one is never edited.

Before 0.1.0 there is one, which is edited in place.
"""
