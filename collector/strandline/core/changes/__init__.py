"""Event to changes: what one event states about runs, jobs, datasets, relations and snapshots."""
