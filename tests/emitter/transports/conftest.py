"""Fixtures shared by transport tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.emitter.recording import RecordingServer, recording_server


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    """A backend."""
    with recording_server() as found:
        yield found
