"""The tables of exports: waiting changes, the position of each target, and sent or refused items.

Ingest only adds to `export_news`. Exporters give the news their numbers under the lock of the row
`export_changes` of `numbers`.
"""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, Table, Text

from strandline.store.schema.columns import (
    CLUSTERED,
    bytes_column,
    code_column,
    count_column,
    flag_column,
    id_column,
    metadata,
    number_column,
    row_number,
    text_column,
    time_column,
)

export_news = Table(
    "export_news",
    metadata,
    row_number(),
    code_column("kind", "0 a run, 1 a dataset, 2 an event as received, 3 an alert"),
    id_column("entity_id", "the run, dataset or event"),
    id_column("group_id", "what it is folded within: of a run its job, of an event its run"),
    time_column("at", "of an event its receipt: with the hash the key of raw_events"),
    bytes_column("hash", "of an event", nullable=True),
    bytes_column("body", "of an alert", nullable=True),
    comment="what transactions changed, without an order yet",
    sqlite_autoincrement=True,
)

export_changes = Table(
    "export_changes",
    metadata,
    code_column("kind", "as in export_news"),
    id_column("entity_id", "as in export_news"),
    number_column("seq", "the order; an entity that changes again moves to the end"),
    id_column("group_id", "as in export_news"),
    time_column("at", "as in export_news"),
    bytes_column("hash", "as in export_news", nullable=True),
    bytes_column("body", "as in export_news", nullable=True),
    PrimaryKeyConstraint("kind", "entity_id"),
    Index(None, "seq", unique=True),
    comment="the changes in order, one row an entity: only its newest state has to arrive",
    **CLUSTERED,
)

export_targets = Table(
    "export_targets",
    metadata,
    Column("name", Text, primary_key=True, comment="as the settings name it"),
    text_column("kinds", "what it wants: runs, events, alerts"),
    count_column("cursor", "all changes up to this number have arrived, or are parked"),
    text_column("holder", "the process that sends at the moment"),
    count_column("held_until", "when another process may send"),
    count_column("heard_at", "when a process last had it in its settings"),
    Column("failures", Integer, nullable=False, server_default="0", comment="in a row"),
    count_column("next_at", "when to try again"),
    text_column("problem", "the last failure, for people"),
    count_column("sent", "how many were sent"),
    count_column("sent_at", "when it was last reached"),
    count_column("dropped", "events that were folded away unsent"),
    comment="how far each target is",
    **CLUSTERED,
)

export_sent = Table(
    "export_sent",
    metadata,
    Column("target", Text, nullable=False, comment="the target"),
    code_column("kind", "as the target calls it"),
    id_column("entity_id", "the entity"),
    bytes_column("shape", "a hash of what makes it another entity to people"),
    bytes_column("detail", "a hash of all of it"),
    time_column("at", "when it was sent"),
    count_column("run_id", "the run by whose changes it is sent again"),
    flag_column("live", "1: it may end by silence, which no event reports"),
    flag_column("stale", "1: a detail has changed that may wait"),
    PrimaryKeyConstraint("target", "kind", "entity_id"),
    comment="what a target has of each entity, so that only changes are sent",
    **CLUSTERED,
)

export_parked = Table(
    "export_parked",
    metadata,
    Column("target", Text, nullable=False, comment="the target"),
    code_column("kind", "as the target calls it"),
    id_column("entity_id", "the entity"),
    time_column("at", "when it was refused"),
    Column("attempts", Integer, nullable=False, comment="how often it was refused"),
    Column("about", Text, nullable=False, comment="the entity, for people"),
    Column("reason", Text, nullable=False, comment="what the target said"),
    code_column("change_kind", "kind of the change that it came of, for a replay"),
    id_column("change_id", "entity of that change"),
    id_column("group_id", "group of that change"),
    time_column("change_at", "moment of that change"),
    bytes_column("hash", "hash of that change", nullable=True),
    bytes_column("body", "body of that change", nullable=True),
    PrimaryKeyConstraint("target", "kind", "entity_id"),
    comment="what a target refused for good, until it takes a newer state of the entity",
    **CLUSTERED,
)
