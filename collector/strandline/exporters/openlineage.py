"""OpenLineage events sent on, over HTTP, to a topic or into a file.

As received, or clean, as Strandline sees each run.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, select, tuple_

from strandline.core.openlineage.events import decode
from strandline.errors import InvalidEventError
from strandline.exporters.openlineage_events import dataset_event, events_of, shape_of
from strandline.exporters.run_items import Namespaces, dataset_items, records_of, run_item
from strandline.exporters.senders import Message, Sender, message_of
from strandline.exporters.target import Change, Item
from strandline.store.ingest.export_news import EVENTS, RUNS
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.compression import Expansion


class CleanEvents:
    """One START and one end a run, RUNNING where a stream's datasets or columns change, edges explicit."""

    kinds = RUNS

    def __init__(self, sender: Sender, namespaces: Namespaces, name: str = "openlineage") -> None:
        self.name = name
        self._sender = sender
        self._namespaces = namespaces

    @property
    def at_once(self) -> int:
        """As many as the sender takes."""
        return self._sender.at_once

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Runs, designs, and datasets by themselves."""
        found = []
        for record, change in records_of(connection, changes, now, self._namespaces):
            first, content = events_of(record)
            if content:
                found.append(run_item(record, change, first, content, shape_of(record)))
        datasets = dataset_items(
            connection,
            changes,
            self._namespaces,
            lambda record, _: (dataset_event(record, round(now * 1_000_000)),),
            lambda record: (record.namespace, record.name, record.facets),
        )
        return [*found, *datasets]

    def send(self, items: Sequence[Item]) -> None:
        """The events of these items, in order."""
        self._sender.send([message_of(event) for item in items for event in item.content])

    def close(self) -> None:
        """Let go of the sender's connections."""
        self._sender.close()


class ReceivedEvents:
    """The events as they came, but for their secrets, in the order in which they were stored."""

    kinds = EVENTS

    def __init__(self, sender: Sender, namespaces: Namespaces, name: str = "openlineage") -> None:
        self.name = name
        self._sender = sender
        self._namespaces = namespaces

    @property
    def at_once(self) -> int:
        """As many as the sender takes."""
        return self._sender.at_once

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """The events that are still stored.

        What retention has dropped is not sent, nor what cannot be read any more.
        """
        expansion = Expansion(connection)
        keys = [(change.at, change.hash) for change in changes]
        rows = connection.execute(
            select(raw_events).where(tuple_(raw_events.c.received_at, raw_events.c.hash).in_(keys))
        )
        bodies = {
            bytes(row.hash): body
            for row, body in expansion.expanded(rows)
            if isinstance(body, bytes)
        }
        found = []
        for change in changes:
            body = bodies.get(bytes(change.hash or b""))
            if body is not None and (message := self._message(body)) is not None:
                hash_ = bytes(change.hash or b"")
                about = f"event {hash_.hex()} of {message.key}"
                found.append(
                    Item(change.kind, change.entity_id, change, about, (message,), hash_, hash_)
                )
        return found

    def _message(self, body: bytes) -> Message | None:
        try:
            event = decode(body)
        except InvalidEventError:
            return None
        of = event.job or event.dataset
        if of is None or not self._namespaces.allow(of.namespace):
            return None
        return Message(body, f"run:{of.namespace}/{of.name}")

    def send(self, items: Sequence[Item]) -> None:
        """The events, in order."""
        self._sender.send([message for item in items for message in item.content])

    def close(self) -> None:
        """Let go of the sender's connections."""
        self._sender.close()
