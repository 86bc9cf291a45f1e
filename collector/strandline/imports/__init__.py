"""The content of other catalogs, taken over as events.

From a Marquez through its API, from a file of DataHub's metadata.
"""
