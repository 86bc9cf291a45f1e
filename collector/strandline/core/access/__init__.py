"""Who may see what: the value that a request carries, and what it leaves of an answer."""
