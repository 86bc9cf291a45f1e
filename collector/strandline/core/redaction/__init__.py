"""What may be stored of a text or a JSON value: secrets are taken out, by name and by form."""
