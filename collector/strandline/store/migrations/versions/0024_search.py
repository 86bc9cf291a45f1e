"""Pages of the search's index; a store that has names already gets them when its program starts, a page of rows a transaction."""

from alembic import op

revision = "0024"
down_revision = "0022"

_TABLE = """CREATE TABLE search_pages (
    id {id} NOT NULL,
    namespace_id BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    size INTEGER NOT NULL,
    words {bytes} NOT NULL,
    owners {bytes} NOT NULL,
    CONSTRAINT pk_search_pages PRIMARY KEY (id)
)"""


def upgrade() -> None:
    """Make the table, and note that the index of an empty store has everything."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.execute(_TABLE.format(id="INTEGER" if sqlite else "BIGINT", bytes="BLOB" if sqlite else "BYTEA"))
    op.execute("CREATE INDEX ix_search_pages_kind_namespace_id_size ON search_pages (kind, namespace_id, size)")
    if not sqlite:  # the order of bytes finds the beginning of an id, and equal ids as before
        op.execute("DROP INDEX ix_runs_run_id")
        op.execute("CREATE INDEX ix_runs_run_id ON runs (run_id text_pattern_ops)")
    op.execute(
        "INSERT INTO store_settings (key, value) SELECT 'search_filled', 'done'"
        " WHERE NOT EXISTS (SELECT 1 FROM datasets) AND NOT EXISTS (SELECT 1 FROM jobs)"
    )
