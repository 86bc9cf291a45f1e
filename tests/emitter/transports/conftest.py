"""What tests of transports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.emitter.recording import Recorder, recorder


@pytest.fixture
def server() -> Iterator[Recorder]:
    """A backend."""
    with recorder() as found:
        yield found
