"""Lists and details of jobs, runs, datasets and received events."""
