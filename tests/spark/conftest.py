"""One Spark session for the tests that read plans in this process, and one JVM for the programs.

Each starts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fixtures.warm_jvm import WarmJvm
    from strandline_spark.jvm.event_queue import EventQueue

SOCKETS = (
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:unclosed <socket:ResourceWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore the sockets that PySpark leaves to the garbage collector, in all tests with a session."""
    for item in items:
        if "lake" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings(*SOCKETS))


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session over real tables; see `fixtures.spark_lake`."""
    pytest.importorskip("pyspark")
    from deploy.jars import JarsError
    from fixtures.spark_lake import lake_session

    try:
        with lake_session(tmp_path_factory.mktemp("lake")) as spark:
            yield spark
    except JarsError as error:
        pytest.skip(str(error))


@pytest.fixture
def queue(lake: Any) -> Iterator[EventQueue]:
    """A queue that listens to the session's events."""
    from strandline_spark.jvm.event_queue import EventQueue

    context = lake.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty(60_000)  # of what other tests have done
    queue = EventQueue(context._gateway, 1000)
    queue.listen(context._jsc.sc())
    yield queue
    queue.leave(context._jsc.sc())


@pytest.fixture
def bank(lake: Any, tmp_path: Path) -> Iterator[Any]:
    """An empty namespace in the catalog `lake`; see `worlds.lake.Lake`."""
    from worlds.lake import bank_in

    with bank_in(lake, tmp_path) as bank:
        yield bank


@pytest.fixture(scope="session")
def warm_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvm]:
    """A JVM in which programs run one after the other; see `fixtures.warm_jvm`."""
    pytest.importorskip("pyspark")
    from deploy.jars import JarsError
    from fixtures.warm_jvm import WarmJvm

    try:
        jvm = WarmJvm(tmp_path_factory.mktemp("warm_jvm"))
    except JarsError as error:
        pytest.skip(str(error))
    yield jvm
    jvm.close()
