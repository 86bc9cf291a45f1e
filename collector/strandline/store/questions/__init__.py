"""Questions about lineage that take more than one walk: what breaks, which way, what changed, who feeds whom."""
