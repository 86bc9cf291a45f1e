"""Notes of writers about the lineage graph, for servers that keep it in memory."""

from sqlalchemy import Connection

from strandline.store.ingest.retention import keep_writers_out
from strandline.store.lineage.graph_log import is_written, turn_on
from strandline.store.sql.shared_settings import agreed


def follow_graph(connection: Connection) -> None:
    """Let every transaction note its changes from now on.

    Waits for writers that began before, where none did so yet.
    """
    if not is_written(agreed(connection)):
        keep_writers_out(connection)
        turn_on(connection)
