"""What Strandline knows, sent on to other catalogs: one outbox in the store, one cursor a target, one file a target."""
