"""What is asked over HTTP, one file a subject."""
