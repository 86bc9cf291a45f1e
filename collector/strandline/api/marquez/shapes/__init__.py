"""The JSON of Marquez: what a dataset, a job and a run look like, many at once."""
