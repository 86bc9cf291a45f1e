"""Alerts to webhooks: generic JSON, or the form that Slack takes. Targets come from the settings and nowhere else.

Two threads, so that a dead target slows nothing: one notes what began and what is over, one sends from the outbox.
"""

import threading
import time
import urllib.request
from collections.abc import Callable, Sequence

import orjson
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from strandline.errors import StrandlineError
from strandline.store.alert_outbox import Message, claim, note, put_off, sent
from strandline.store.connect import reading
from strandline.store.follower import Follower
from strandline.store.troubles import troubles

SEND_SECONDS = 5.0
IDLE_SECONDS = 0.5
SLACK = "slack="


def targets_of(setting: str | None) -> tuple[str, ...]:
    """The targets that a setting lists.

    >>> targets_of("https://a.example/hook, slack=https://hooks.slack.com/x")
    ('https://a.example/hook', 'slack=https://hooks.slack.com/x')
    """
    return tuple(one.strip() for one in (setting or "").split(",") if one.strip())


class Alerting:
    """Looks for trouble and tells of it, while a server runs."""

    def __init__(
        self,
        engine: Engine,
        follower: Follower,
        targets: Sequence[str],
        complain: Callable[[str], None],
        *,
        staleness_bound: float | None = None,
        interval: float = 10.0,
    ) -> None:
        self._engine = engine
        self._follower = follower
        self._targets = tuple(targets)
        self._complain = complain
        self._bound = staleness_bound
        self._interval = interval
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work, pause), name=name, daemon=True)
            for name, work, pause in (("alerts", self.look, interval), ("webhooks", self.send, IDLE_SECONDS))
        ]

    def start(self) -> None:
        """Start both threads, if there is anybody to tell."""
        if self._targets:
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End both threads; a message on its way is finished first."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=2 * SEND_SECONDS)

    def look(self, now: float) -> int:
        """Note what began and what is over; how many messages that made for each target."""
        with self._follower.model() as model, reading(self._engine).connect() as connection:
            found = troubles(connection, model, self._bound, now)
        with self._engine.begin() as connection:
            return note(connection, found, self._targets, now)

    def send(self, now: float) -> int:
        """Send what is due; how many messages were taken."""
        with self._engine.begin() as connection:
            messages = claim(connection, now)
        return sum(self._deliver(message, now) for message in messages)

    def _deliver(self, message: Message, now: float) -> bool:
        taken = post(message.target, message.body)
        with self._engine.begin() as connection:
            if taken:
                sent(connection, message)
            else:
                put_off(connection, message, now)
        return taken

    def _run(self, work: Callable[[float], int], pause: float) -> None:
        while not self._stopping.wait(pause):
            try:
                work(time.time())
            except (StrandlineError, DBAPIError) as error:
                self._complain(str(error).partition("\n")[0])


def post(target: str, body: bytes) -> bool:
    """Whether the target took the message."""
    address = target.removeprefix(SLACK)
    content = orjson.dumps({"text": slack_text(body)}) if target.startswith(SLACK) else body
    headers = {"Content-Type": "application/json", "User-Agent": "strandline"}
    try:
        request = urllib.request.Request(address, content, headers, method="POST")
        with urllib.request.urlopen(request, timeout=SEND_SECONDS) as answer:
            return 200 <= int(answer.status) < 300
    except (OSError, ValueError):  # refused, timed out, an error status, not an address: all the same, later again
        return False


def slack_text(body: bytes) -> str:
    """A message as a line for people.

    >>> slack_text(b'{"status": "firing", "rule": "lost", "text": "job a is lost"}')
    ':red_circle: lost: job a is lost'
    """
    message = orjson.loads(body)
    sign = ":red_circle:" if message["status"] == "firing" else ":large_green_circle: over:"
    return f"{sign} {message['rule']}: {message['text']}"
