"""Alerts to webhooks: generic JSON, or the form that Slack takes.

Targets come from the settings and nowhere else. One thread notes what began and what is over. Each
target has a thread of its own that sends from the outbox of all exports, so a dead or slow one
delays no other.
"""

import time
from collections.abc import Callable, Sequence
from uuid import uuid4

import orjson
from sqlalchemy import Connection, Engine

from strandline.alerts.conditions import model_troubles, store_troubles
from strandline.alerts.details import details_of
from strandline.alerts.outbox import firing_keys, note
from strandline.core.openlineage.names import id_of
from strandline.core.versions.delays import Staleness
from strandline.core.versions.strong_weak import ago
from strandline.exporters.delivery import Delivery
from strandline.exporters.http_client import Client, Network
from strandline.exporters.outbox import clean, register
from strandline.exporters.target import Change, Item, digest
from strandline.runtime.follower import Follower
from strandline.runtime.periodic import Turns
from strandline.store.ingest.export_news import ALERTS
from strandline.store.sql.engine import read_from

SEND_SECONDS = 5.0
IDLE_SECONDS = 0.5
SLACK = "slack="
SIGNS = {
    "firing": ":red_circle:",
    "recovered": ":large_green_circle: over",
    "trial": ":large_blue_circle:",
}


def targets_of(setting: str | None) -> tuple[str, ...]:
    """Return the targets that a setting lists.

    >>> targets_of("https://a.example/hook, slack=https://hooks.slack.com/x")
    ('https://a.example/hook', 'slack=https://hooks.slack.com/x')
    """
    return tuple(address.strip() for address in (setting or "").split(",") if address.strip())


class Alerting:
    """The search for trouble, and its messages, while a server runs."""

    def __init__(
        self,
        engine: Engine,
        follower: Follower,
        targets: Sequence[str],
        complain: Callable[[str], None],
        *,
        staleness_bound: float | None = None,
        interval: float = 10.0,
        networks: Sequence[Network] = (),
        public_url: str = "",
    ) -> None:
        self._engine = engine
        self._follower = follower
        holder = uuid4().hex
        self._deliveries = [
            Delivery(engine, Webhook(target, networks), holder) for target in targets
        ]
        self._bound = staleness_bound
        self._public_url = public_url
        works: list[tuple[Callable[[], int], float]] = [(lambda: self.look(time.time()), interval)]
        works += [(delivery.deliver, IDLE_SECONDS) for delivery in self._deliveries]
        self._turns = [
            Turns(f"alerts-{number}", work, pause, complain)
            for number, (work, pause) in enumerate(works)
        ]

    def start(self) -> None:
        """Start the threads, if there is a target."""
        for turns in self._turns if self._deliveries else ():
            turns.start()

    def stop(self) -> None:
        """End the threads; messages on their way are finished first."""
        for turns in self._turns:
            turns.stop(2 * SEND_SECONDS)
        for delivery in self._deliveries:
            delivery.release()

    def look(self, now: float) -> int:
        """Note what began and what is over; return the number of messages for each target."""
        with self._follower.model() as model:
            troubles, of_tables = model_troubles(model, self._bound, now)
        stale = {table.table for table in of_tables if isinstance(table, Staleness)}
        with read_from(self._engine) as connection:
            troubles += store_troubles(connection, of_tables, now)
            firing = firing_keys(connection)
            details = {
                trouble.key: details_of(connection, trouble, stale, self._public_url, now)
                for trouble in troubles
                if trouble.key not in firing
            }
        with self._engine.begin() as connection:
            for delivery in self._deliveries:
                register(connection, delivery.target.name, ALERTS, now)
            clean(connection, now)
            return note(connection, troubles, details, now)

    def send(self, now: float) -> int:
        """Send what is due at a moment to each target; return the number of messages taken."""
        return sum(delivery.deliver(lambda: now) for delivery in self._deliveries)


class Webhook:
    """A target of alerts, named after a hash of its address, which may hold a secret."""

    kinds = ALERTS
    at_once = 1

    def __init__(self, target: str, networks: Sequence[Network] = ()) -> None:
        self.name = f"alerts-{id_of('webhook', target):016x}"
        self._is_slack = target.startswith(SLACK)
        self._client = Client(target.removeprefix(SLACK), networks=networks, seconds=SEND_SECONDS)

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Return the messages."""
        return [self._item(change, change.body or b"{}") for change in changes]

    def _item(self, change: Change, body: bytes) -> Item:
        content = orjson.dumps({"text": slack_text(body)}) if self._is_slack else body
        hash_ = digest(body.decode())
        return Item(
            change.kind, change.entity_id, change, slack_text(body), (content,), hash_, hash_
        )

    def send(self, items: Sequence[Item]) -> None:
        """Send each message in a request."""
        for item in items:
            self._client.send("POST", "", item.content[0])

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def trial_of(target: str) -> bytes:
    """Return the body of a trial message, in the form that the target takes."""
    message = {
        "status": "trial",
        "rule": "trial",
        "about": "strandline check",
        "text": "this is a trial message of strandline check; nothing is wrong",
    }
    body = orjson.dumps(message)
    return orjson.dumps({"text": slack_text(body)}) if target.startswith(SLACK) else body


def slack_text(body: bytes) -> str:
    """Return a message as text for people.

    >>> slack_text(b'{"status": "firing", "rule": "lost", "text": "job a is lost"}')
    ':red_circle: lost: job a is lost'
    >>> slack_text(b'{"status": "recovered", "rule": "lost", "text": "x", "since": 0, "at": 600}')
    ':large_green_circle: over after 10 min: lost: x'
    """
    message = orjson.loads(body)
    sign = SIGNS[message["status"]]
    if message["status"] == "recovered":
        sign += f" after {ago(message['at'] - message['since'])}:"
    lines = [f"{sign} {message['rule']}: {message['text']}"]
    if message["status"] != "firing":
        return lines[0]
    if message.get("reason"):
        lines.append(message["reason"])
    if message.get("owners"):
        lines.append(f"owner: {', '.join(message['owners'])}")
    if message.get("dependents"):
        lines.append(f"depends on it: {', '.join(message['dependents'])}")
    if message.get("late"):
        lines.append(f"tables made late: {', '.join(message['late'])}")
    if message.get("link"):
        lines.append(message["link"])
    return "\n".join(lines)
