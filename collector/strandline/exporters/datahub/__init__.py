"""DataHub: urns as its own OpenLineage converter makes them, aspects, and the two ways in.

REST and a file of metadata.
"""
