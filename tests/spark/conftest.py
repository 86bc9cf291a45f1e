"""One Spark session for all tests of the emitter that read plans in this process: starting one takes ten seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session over real tables; see `spark_lake`."""
    pytest.importorskip("pyspark")
    from deploy.jars import JarsError
    from fixtures.spark_lake import lake_session

    try:
        with lake_session(tmp_path_factory.mktemp("lake")) as spark:
            yield spark
    except JarsError as error:
        pytest.skip(str(error))
