"""Aligned streaming jobs: a micro-batch reads every input at one barrier."""
