"""Table formats: one folder or module each, behind one contract (`contract`) and one registry (`registry`)."""
