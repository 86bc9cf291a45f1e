"""The views (filled in below)."""

from sqlalchemy import Connection


def create_views(connection: Connection) -> None:
    """Create the views."""
