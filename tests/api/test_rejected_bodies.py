"""Invalid and oversized bodies are rejected before the database is used."""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fixtures.servers import SETTINGS, client_of, problem, serving
from strandline.store.sql.engine import make_engine
from worlds.sample_events import as_bytes, run_event


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[httpx.Client]:
    """One server for all: nothing of this is stored."""
    file = tmp_path_factory.mktemp("refused") / "strandline.db"
    shutil.copy(sqlite_template, file)
    engine = make_engine(f"sqlite:///{file}")
    with serving(engine) as address, client_of(address, "") as client:
        yield client
    engine.dispose()


@pytest.fixture(autouse=True)
def nothing_is_stored(client: httpx.Client) -> Iterator[None]:
    """Whatever is refused leaves nothing behind."""
    yield
    assert client.get("/api/v2/events").json()["items"] == []
    assert client.get("/api/v2/dead-letters").json()["items"] == []


HOSTILE = {
    "nothing": b"",
    "no json": b"{",
    "no object": b"[]",
    "null": b"null",
    "deep": b"[" * 2_000_000,
    "deep object": b'{"a":' * 200_000,
    "no utf-8": b'{"eventTime": "\xff\xfe"}',
    "nan": b'{"eventTime": NaN}',
    "a number too long": b'{"eventTime": ' + b"9" * 100_000 + b"}",
    "a type that is none": as_bytes(run_event(kind="STARTED")),
    "a time that is none": as_bytes(run_event(eventTime="yesterday")),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_bad_input_gets_a_4xx_status(client: httpx.Client, body: bytes) -> None:
    status, code, _ = problem(client.post("/api/v1/lineage", content=body))

    no_json = body in (HOSTILE["nothing"], HOSTILE["no json"], HOSTILE["no utf-8"])
    assert (status, code) == ((400, "invalid_body") if no_json else (422, "invalid_event"))


@pytest.mark.parametrize(
    ("body", "encoding", "expected"),
    [
        (b"plain", "gzip", (400, "invalid_body")),
        (gzip.compress(as_bytes(run_event()))[:-9], "gzip", (400, "invalid_body")),
        (as_bytes(run_event()), "br", (400, "invalid_body")),
        (gzip.compress(b" " * 30_000_000), "gzip", (413, "too_large")),
        (gzip.compress(b" " * 40_000_000), "", (413, "too_large")),
    ],
    ids=["not gzip", "cut off", "another encoding", "a bomb by its ratio", "a bomb by its size"],
)
def test_compressed_bodies_have_limits(
    client: httpx.Client, body: bytes, encoding: str, expected: tuple[int, str]
) -> None:
    headers = {"Content-Encoding": encoding} if encoding else {}

    assert problem(client.post("/api/v1/lineage", content=body, headers=headers))[:2] == expected


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_gets_413(client: httpx.Client, chunked: bool) -> None:
    body = b" " * (SETTINGS.max_body_bytes + 1)
    content = (
        (body[start : start + 2**20] for start in range(0, len(body), 2**20)) if chunked else body
    )

    assert problem(client.post("/api/v1/lineage", content=content))[:2] == (413, "too_large")


@pytest.mark.parametrize(
    "body", [b"{}", b"", b"[1,", b"[" * 1_000_000], ids=["object", "empty", "cut off", "deep"]
)
def test_non_array_batch_gets_400(client: httpx.Client, body: bytes) -> None:
    assert problem(client.post("/api/v1/lineage/batch", content=body))[:2] == (400, "invalid_body")


@pytest.mark.parametrize("number", [10_001, 10_000_000])
def test_batch_of_too_many_events_gets_413(client: httpx.Client, number: int) -> None:
    answer = client.post("/api/v1/lineage/batch", content=b"[" + b"1," * (number - 1) + b"1]")

    assert problem(answer) == (413, "too_large", "the array has more than 10000 events")


def test_empty_batch_is_valid(client: httpx.Client) -> None:
    assert client.post("/api/v1/lineage/batch", content=b"[]").status_code == 204
