"""Alerts to webhooks: generic JSON, or the form that Slack takes. Targets come from the settings and nowhere else.

One thread notes what began and what is over; each target has a thread of its own that sends from the outbox, so a dead or
slow one keeps nobody waiting.
"""

import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial

import orjson
from sqlalchemy import Engine

from strandline.alerts.conditions import model_troubles, store_troubles
from strandline.alerts.outbox import claim, note, put_off, sent
from strandline.runtime.follower import Follower
from strandline.runtime.periodic import Turns
from strandline.store.sql.engine import reading

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
        self._bound = staleness_bound
        works: list[tuple[Callable[[float], int], float]] = [(self.look, interval)]
        works += [(partial(self._send_to, target), IDLE_SECONDS) for target in self._targets]
        self._turns = [
            Turns(f"alerts-{number}", lambda work=work: work(time.time()), pause, complain)  # type: ignore[misc]
            for number, (work, pause) in enumerate(works)
        ]

    def start(self) -> None:
        """Start the threads, if there is anybody to tell."""
        for turns in self._turns if self._targets else ():
            turns.start()

    def stop(self) -> None:
        """End the threads; messages on their way are finished first."""
        for turns in self._turns:
            turns.stop(2 * SEND_SECONDS)

    def look(self, now: float) -> int:
        """Note what began and what is over; how many messages that made for each target."""
        with self._follower.model() as model:
            found, stale = model_troubles(model, self._bound, now)
        with reading(self._engine).connect() as connection:
            found += store_troubles(connection, stale, now)
        with self._engine.begin() as connection:
            return note(connection, found, self._targets, now)

    def send(self, now: float) -> int:
        """Send what is due, to one target after the other; how many messages were taken."""
        return sum(self._send_to(target, now) for target in self._targets)

    def _send_to(self, target: str, now: float) -> int:
        """Send what is due to a target, in order, up to the first message that it does not take."""
        with self._engine.begin() as connection:
            messages = claim(connection, target, now)
        for place, message in enumerate(messages):
            taken = post(target, message.body)
            with self._engine.begin() as connection:
                if not taken:
                    put_off(connection, message, messages[place + 1 :], now)
                    return place
                sent(connection, message)
        return len(messages)


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
