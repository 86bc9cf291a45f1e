"""Events that are bent in their structure, and checks of what becomes of them on every way in.

A bent event is a good one with a few of its values replaced, dropped, nested or moved; so it gets
past the first checks.
"""

import copy
import json
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine
from starlette.testclient import TestClient

from fixtures.servers import SETTINGS
from strandline.api.app import create_app
from strandline.core.changes.compact import compact
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.errors import InvalidEventError
from strandline.logs import make_log
from strandline.store.ingest.take import Caches, Outcome, Record, take, validated
from strandline.store.sql.engine import make_engine
from worlds.builders import batch, dataset, event, job_event, snapshot, symlink

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
COLUMNS = {"fields": {"c": {"inputFields": [{"namespace": "file", "name": "/a", "field": "x"}]}}}
GOOD = (
    event(
        "START",
        inputs=[dataset("/a", "file", snapshot("1"))],
        outputs=[dataset("/b", "file", columnLineage=COLUMNS)],
    ),
    event(
        "COMPLETE",
        facets={"parent": {"run": {"runId": "r"}, "job": {"namespace": "n", "name": "j"}}},
    ),
    event(
        "FAIL",
        facets={"errorMessage": {"message": "m", "programmingLanguage": "p", "stackTrace": "s"}},
    ),
    batch(
        1,
        inputs=[dataset("/a", "file", symlinks=symlink("/c"))],
        outputs=[dataset("/b", "file", snapshot("2"))],
    ),
    job_event(inputs=[dataset("/a", "file", schema={"fields": [{"name": "x", "type": "int"}]})]),
)
TEXTS = [json.dumps(one) for one in GOOD]
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        2**63,
        2**200,
        1e308,
        "",
        " ",
        "\0",
        "\ud800",
        "x" * 5000,
        [],
        {},
        [[]],
        [{}],
        {"": None},
    ),
    *(
        "2026-13-45T99:99:99Z",
        "9999-12-31T23:59:59.999999999Z",
        "0001-01-01T00:00:00-23:59",
        "🙈",
        "a:b:c//?#[]@",
        ["x"] * 50,
    ),
)
OUTCOMES = {"stored", "duplicate", "dead"}  # never "unread": that is a fault of ours


def bent(chance: random.Random) -> bytes:
    """Return a good event with one to four changes.

    Now and then cut off, or with a byte of another kind.
    """
    found = json.loads(chance.choice(TEXTS))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        if found:
            _bend(chance, *place(chance, found))
    raw = json.dumps(found).encode("utf-8", "surrogatepass")
    if chance.random() < 0.05:
        raw = raw[: chance.randrange(len(raw))]
    if chance.random() < 0.05:
        raw = raw.replace(b'"', chance.choice((b"'", b"\xff", b"")), 1)
    return raw


def place(chance: random.Random, holder: Any) -> tuple[Any, Any]:
    """Choose a place in a document that is not empty, rather deep in it.

    Return what holds a value, and its key there.
    """
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        inner = [
            holder[key] for key in keys if holder[key] and isinstance(holder[key], dict | list)
        ]
        if not inner or chance.random() < 0.2:
            return holder, chance.choice(keys)
        holder = chance.choice(inner)


def _bend(chance: random.Random, holder: Any, last: Any) -> None:
    match chance.randrange(5):
        case 0:
            del holder[last]
        case 1:
            holder[last] = [copy.deepcopy(holder[last]) for _ in range(chance.randint(1, 3))]
        case 2:
            holder[last] = {"x": holder[last]}
        case 3 if isinstance(holder, dict):
            holder[chance.choice((f"{last} ", str(last).upper(), "", "_deleted"))] = holder.pop(
                last
            )
        case _:
            holder[last] = copy.deepcopy(chance.choice(ODD))


def refused(raw: bytes) -> bool:
    """Return whether a body is rejected as no event; any other error fails the test."""
    try:
        validated(raw, NOW)
    except InvalidEventError as error:
        return bool(error.reason)
    return False


def fault(raw: bytes) -> str:
    """Read a body; return the fault, '' where it is refused with a reason or leaves rows that both databases can hold."""
    try:
        event, _ = decoded(raw)
    except InvalidEventError as error:
        return "" if error.reason else "it is refused without a reason"
    changes = changes_of(
        event, Stamp.of(event.at, content_hash(raw), micros_of(NOW)), Caches().memory
    ).changes
    values = (value for rows in compact(changes).values() for row in rows for value in row)
    return next(
        (f"{value!r:.200} cannot be stored" for value in values if not is_storable(value)), ""
    )


def is_storable(value: Any) -> bool:
    """Return whether a value fits into a column: of 64 bits, or a text that PostgreSQL takes.

    Sets of edges and aliases are unpacked later.
    """
    match value:
        case int():
            return -(2**63) <= value < 2**63
        case str():
            return "\0" not in value and value == value.encode(errors="replace").decode()
        case tuple():
            return all(map(is_storable, value))
        case _:
            return value is None or isinstance(value, bytes)


def check_decoder(seed: int, count: int) -> None:
    """Read bodies in process: each is refused or becomes rows."""
    chance = random.Random(seed)
    for number in range(count):
        raw = bent(chance)
        try:
            wrong = fault(raw)
        except Exception as error:  # noqa: BLE001 - whatever it is, a body has brought it about
            wrong = repr(error)
        assert wrong == "", f"seed {seed}, body {number}: {raw!r}"


def taken(engine: Engine, bodies: list[bytes]) -> list[Outcome]:
    """Take bodies as the records of a topic; return their outcomes."""
    caches = Caches()
    with engine.begin() as connection:
        records = [Record(body, NOW, "fuzzed", 0, offset) for offset, body in enumerate(bodies)]
        outcomes = take(connection, records, caches)
    caches.commit()
    return outcomes


def check_topic(engine: Engine, seed: int, count: int) -> None:
    """Take records of a topic: each is an event or a dead letter, and the decoder agrees."""
    chance = random.Random(seed)
    for start in range(0, count, 50):
        bodies = [bent(chance) for _ in range(50)]
        outcomes = taken(engine, bodies)
        wrong = [
            (body, outcome)
            for body, outcome in zip(bodies, outcomes, strict=True)
            if outcome.kind not in OUTCOMES or (outcome.kind == "dead") is not refused(body)
        ]
        assert wrong == [], f"seed {seed}, records from {start}"


def check_http(url: str, count: int) -> Counter[int]:
    """Send bodies over HTTP, each of which has to be stored or refused with its place.

    Return the statuses.
    """
    chance, statuses = random.Random(2), Counter[int]()
    engine = make_engine(url)
    app = create_app(engine, SETTINGS, log=make_log(level="critical"))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for _ in range(count):
            body = bent(chance)
            answer = client.post("/api/v1/lineage", content=body)
            statuses[answer.status_code] += 1
            assert answer.status_code in (201, 400, 422), (body, answer.text)
            assert answer.status_code == 201 or {"detail", "code"} <= answer.json().keys()
        assert client.get("/readyz").status_code == 200
    engine.dispose()
    return statuses
