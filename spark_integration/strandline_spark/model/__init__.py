"""Values that describe statements, datasets and snapshots; they import nothing of ours."""
