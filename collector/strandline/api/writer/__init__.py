"""Taking events in over HTTP: group commit, and the process that writes."""
