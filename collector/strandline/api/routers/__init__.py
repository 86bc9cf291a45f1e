"""The routes of /api/v2, of the proposals and of operators, one file a subject."""
