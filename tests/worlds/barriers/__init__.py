"""Random histories of jobs and tables, and an oracle that answers slowly and obviously from definitions."""
