"""Bodies of facets and barriers may be packed from here on, which an older program could not read; what is stored stays as it is.

On PostgreSQL pages of rows that get newer times are filled further than before: facets are half as long, so that a page that
is filled to four fifths has room for as many of them again. Pages that are there stay as they are.
"""

from alembic import op

revision = "0028"
down_revision = "0027"

ROOM_FOR_NEWER = ("facets", "runs", "relations")


def upgrade() -> None:
    """Raise the schema's number, and fill pages further."""
    if op.get_bind().dialect.name == "postgresql":
        for table in ROOM_FOR_NEWER:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 80)")
