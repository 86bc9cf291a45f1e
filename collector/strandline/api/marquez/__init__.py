"""The API of Marquez 0.51 over this store, one file a subject.

Its page and the reading methods of its clients
work unchanged.

Names, shapes and defaults are Marquez'. Where it is wrong this is right: states do not depend on
the order of events, a START hides no lineage, an event that comes twice changes nothing, and a body
that is no JSON is 400.
"""
