"""Bodies of facets and barriers may be packed from here on, which an older program could not read; what is stored stays as it is.

On PostgreSQL servers of the version before may go on beside this one: a store that holds something packs what it receives a day
from now. An SQLite file has one server.

On PostgreSQL pages of rows that get newer times are filled further than before: facets are half as long, so that a page that
is filled to four fifths has room for as many of them again. Pages that are there stay as they are.
"""

from alembic import op

revision = "0028"
down_revision = "0027"

PACKED_FROM = """INSERT INTO store_settings (key, value)
SELECT 'facets_packed_from', CAST(CAST((extract(epoch FROM clock_timestamp()) + 86400) * 1000000 AS BIGINT) AS TEXT)
WHERE EXISTS (SELECT 1 FROM datasets) OR EXISTS (SELECT 1 FROM jobs)"""
ROOM_FOR_NEWER = ("facets", "runs", "relations")


def upgrade() -> None:
    """Raise the schema's number, note from when on bodies are packed, and fill pages further."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(PACKED_FROM)
        for table in ROOM_FOR_NEWER:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 80)")
