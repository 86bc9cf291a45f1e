"""Further processes of one server that answer HTTP beside the first: `strandline serve --processes`."""
