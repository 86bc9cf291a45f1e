"""Other notes of the store about jobs, datasets and runs.

Annotations, what was set aside, leases, alerts, the outbox, the audit log.

What only says something of it goes. The audit log keeps its entries, without the name.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, delete, or_, select, update

from strandline.core.forgotten import GONE, NamesToForget, Texts, left_of
from strandline.store.forgetting.events import Left
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.export_news import DATASET, EVENT, RUN
from strandline.store.schema.access_tables import audit_log
from strandline.store.schema.annotation_tables import annotation_log, annotations
from strandline.store.schema.export_tables import (
    export_changes,
    export_news,
    export_parked,
    export_sent,
)
from strandline.store.schema.received_tables import refused_events, set_aside
from strandline.store.schema.snapshot_tables import catalog_options, startup_snapshots
from strandline.store.schema.version_tables import (
    alerts,
    group_jobs,
    group_roots,
    open_rollbacks,
    reader_leases,
    version_news,
)
from strandline.store.sql.id_lists import among

_SET_ASIDE = (
    set_aside,
    refused_events,
)  # whole events, or what was sent in place of one
_SAID = (
    reader_leases,
    open_rollbacks,
    alerts,
    export_news,
    export_changes,
    export_parked,
)  # goes where it names it


def forget_notes(
    connection: Connection, target: Target, own_runs: Iterable[int], left: Iterable[Left]
) -> Counter[str]:
    """Take it out of every such table; how many rows went, or are others now."""
    naming, counts = target.naming, Counter[str]()
    runs = frozenset(own_runs)
    for table, where in _owned(target, runs, left):
        counts[table.name] += connection.execute(delete(table).where(where)).rowcount
    for table in _SET_ASIDE:
        counts[table.name] += _clean(connection, table, naming, target)
    for table in _SAID:
        counts[table.name] += sum(
            connection.execute(delete(table).where(*_this(table, row))).rowcount
            for row in connection.execute(select(table)).all()
            if _names_it(row, naming, target)
        )
    for table in (annotations, annotation_log):
        counts[table.name] += _clean_annotations(connection, table, naming, target)
    counts[audit_log.name] += _unname(connection, naming, target)
    return +counts


def _owned(
    target: Target, runs: frozenset[int], left: Iterable[Left]
) -> Iterable[tuple[Table, Any]]:
    """Yield the rows that hang on an id."""
    things = [*target.job_ids, *target.dataset_ids, *target.namespace_ids]
    events = [
        int.from_bytes(event.before.hash[:8], "big") >> 1 for event in left if event.after is None
    ]
    yield (
        startup_snapshots,
        or_(
            among(startup_snapshots.c.run_id, runs),
            among(startup_snapshots.c.job_id, target.job_ids),
            among(startup_snapshots.c.dataset_id, target.dataset_ids),
        ),
    )
    yield group_jobs, among(group_jobs.c.job_id, target.job_ids)
    yield group_roots, among(group_roots.c.dataset_id, target.dataset_ids)
    yield version_news, among(version_news.c.entity_id, [*runs, *target.dataset_ids])
    yield annotations, among(annotations.c.entity_id, things)
    entities = [
        f"{kind}:{namespace}:{name}"
        for kind in ("job", "dataset")
        for namespace, name in target.names
    ]
    if target.namespace_ids:
        entities += [f"namespace:{word}" for word in target.words]
        yield catalog_options, catalog_options.c.namespace.in_(target.words)
    yield annotation_log, among(annotation_log.c.entity, entities)
    for table in (export_news, export_changes, export_sent, export_parked):
        kinds = ((RUN, runs), (DATASET, target.dataset_ids), (EVENT, events))
        own = [
            and_(table.c.kind == kind, among(table.c.entity_id, ids)) for kind, ids in kinds if ids
        ]
        if table is export_sent:
            own = [among(table.c.entity_id, [*things, *runs, *events]), among(table.c.run_id, runs)]
        if own:
            yield table, or_(*own)


def _clean(connection: Connection, table: Table, naming: NamesToForget, target: Target) -> int:
    """Rows whose body is what somebody sent.

    Without it as an event is, or, where it is no JSON, gone if it is mentioned.
    """
    changed = 0
    for row in connection.execute(select(table)).all():
        body, texts = (
            bytes(row.body),
            {name: value for name, value in row._mapping.items() if isinstance(value, str)},
        )
        remaining = _left_of_any(body, naming, target)
        named = _named_in("\n".join(_texts(row)), naming, target)
        kept_texts = {name: named.without(value) for name, value in texts.items()}
        if remaining is None:
            connection.execute(delete(table).where(*_this(table, row)))
        elif remaining != body or kept_texts != texts:
            connection.execute(
                update(table).where(*_this(table, row)).values(body=remaining, **kept_texts)
            )
        else:
            continue
        changed += 1
    return changed


def _clean_annotations(
    connection: Connection, table: Table, naming: NamesToForget, target: Target
) -> int:
    """Delete annotations of others whose tag is called after it; take it out of their values.

    A column or another dataset may have its name.
    """
    changed = 0
    for row in connection.execute(select(table)).all():
        value = _named_in(f"{row.name}\n{row.value}", naming, target).without(row.value)
        if _is_called_after(row, naming, target):
            connection.execute(delete(table).where(*_this(table, row)))
        elif value != row.value:
            connection.execute(update(table).where(*_this(table, row)).values(value=value))
        else:
            continue
        changed += 1
    return changed


def _is_called_after(row: Row[Any], naming: NamesToForget, target: Target) -> bool:
    """Return whether a tag's name has its name, and the tag says of which namespace."""

    def has_name(text: str) -> bool:
        words = naming.texts.words_in(text)
        return any(target.namespace_texts.without(word) != GONE for word in words)

    texts = (row.name, row.value)
    is_told = any(has_name(text) and _has_both(text, naming, target) for text in texts)
    return (is_told and has_name(row.name)) or target.run_texts.are_in(row.name)


def _left_of_any(body: bytes, naming: NamesToForget, target: Target) -> bytes | None:
    try:
        if left_of(body, naming, prose=False) is body:
            text = body.decode("utf-8", "replace")
            naming = naming._replace(texts=_named_in(text, naming, target))
        return left_of(body, naming, prose=True)
    except (ValueError, RecursionError):  # it is no JSON, or was cut off
        return None if naming.texts.are_in(body.decode("utf-8", "replace")) else body


def _names_it(row: Row[Any], naming: NamesToForget, target: Target) -> bool:
    texts = _texts(row)
    if _named_in("\n".join(texts), naming, target).are_in("\n".join(texts)):
        return True
    return any(
        isinstance(value, bytes | memoryview) and _is_named_in(bytes(value), naming)
        for value in row._mapping.values()
    )


def _is_named_in(body: bytes, naming: NamesToForget) -> bool:
    try:
        return left_of(body, naming, prose=False) is not body if body[:1] in (b"{", b"[") else False
    except (ValueError, RecursionError):
        return False


def _named_in(text: str, naming: NamesToForget, target: Target) -> Texts:
    """Return the words to remove from a text: names only beside their namespace.

    Others may have such names.
    """
    is_named = _has_both(text.replace("\\/", "/"), naming, target)
    return naming.texts if is_named else target.run_texts


def _has_both(text: str, naming: NamesToForget, target: Target) -> bool:
    if target.namespace_ids:
        return any(map(target.namespace_texts.are_in, naming.texts.words_in(text)))
    return target.namespace_texts.are_in(text) and naming.texts.are_in(text)


def _texts(row: Row[Any]) -> list[str]:
    shown = (
        value for value in row._mapping.values() if isinstance(value, str | bytes | memoryview)
    )
    return [
        value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
        for value in shown
    ]


def _unname(connection: Connection, naming: NamesToForget, target: Target) -> int:
    changed = 0
    for row in connection.execute(
        select(audit_log.c.id, audit_log.c.what, audit_log.c.details)
    ).all():
        named = _named_in(f"{row.what}\n{row.details}", naming, target)
        what, details = named.without(row.what), named.without(row.details)
        if (what, details) != (row.what, row.details):
            connection.execute(
                update(audit_log).where(audit_log.c.id == row.id).values(what=what, details=details)
            )
            changed += 1
    return changed


def _this(table: Table, row: Row[Any]) -> list[Any]:
    return [column == row._mapping[column] for column in table.primary_key.columns]
