"""Reading several tables at one version."""
