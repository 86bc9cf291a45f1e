"""The collector is contacted at the configured address only."""

import socket

import pytest

from fixtures.emitter.recording import recording_server
from strandline_spark.consistency.collector import Collector, CollectorAwayError


def test_a_redirect_does_not_take_the_token_to_another_host() -> None:
    with recording_server() as server, socket.create_server(("127.0.0.1", 0)) as other:
        elsewhere = f"http://127.0.0.1:{other.getsockname()[1]}/elsewhere"
        server.status, server.headers = 302, {"Location": elsewhere}
        with pytest.raises(CollectorAwayError) as error:
            Collector(server.url, "t0ken", seconds=1).ask("POST", "/api/v2/versions", {})
        other.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            other.accept()

    assert str(error.value) == (
        f"the collector at {server.url} sends POST /api/v2/versions on to {elsewhere}, which is not followed"
    )
