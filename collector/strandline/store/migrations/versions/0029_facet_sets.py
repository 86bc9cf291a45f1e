"""Sets of facets that many entities have, once each, and which entity had which. What is stored stays as it is: both ways are read.

On PostgreSQL servers of the version before may go on beside this one, and would not find these facets: a store that holds
something writes sets a day from now. An SQLite file has one server.
"""

from alembic import op

revision = "0029"
down_revision = "0028"

SETS = """CREATE TABLE facet_sets (
    set_id BIGINT NOT NULL,
    key TEXT DEFAULT '' NOT NULL,
    kind SMALLINT NOT NULL,
    hash {bytes} NOT NULL,
    body {bytes},
    deleted SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_facet_sets PRIMARY KEY (set_id, key)
){end}"""
USES = """CREATE TABLE facet_uses (
    entity_id BIGINT NOT NULL,
    set_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_facet_uses PRIMARY KEY (entity_id, set_id)
){end}"""
SHARED_FROM = """INSERT INTO store_settings (key, value)
SELECT 'facet_sets_from', CAST(CAST((extract(epoch FROM clock_timestamp()) + 86400) * 1000000 AS BIGINT) AS TEXT)
WHERE EXISTS (SELECT 1 FROM datasets) OR EXISTS (SELECT 1 FROM jobs)"""


def upgrade() -> None:
    """Make the tables, and note from when on sets are written."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    form = {"bytes": "BLOB", "end": " WITHOUT ROWID"} if sqlite else {"bytes": "BYTEA", "end": ""}
    op.execute(SETS.format(**form))
    op.execute(USES.format(**form))
    if not sqlite:
        op.execute("ALTER TABLE facet_uses SET (fillfactor = 80)")  # rows get newer times
        op.execute(SHARED_FROM)
