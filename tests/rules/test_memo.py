"""The memory used by decoding is bounded in bytes for any events."""

import tracemalloc

import pytest

from strandline.core.changes import memory as memo
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.memory import LARGE, RESULT_BYTES, Memory
from strandline.core.openlineage.events import decode
from worlds.builders import dataset, encode, event

MEBIBYTE = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A memory of a twentieth, for events of a twentieth.

    What is done to 480 MB of names takes a minute.
    """
    for name in ("RESULT_BYTES", "LAST_BYTES", "LARGE", "NAMES"):
        monkeypatch.setattr(memo, name, getattr(memo, name) // 20)
    return 20


@pytest.mark.slow
def test_long_names_use_no_more_memory_than_short_ones(small: int) -> None:
    kept_by = Memory()
    tracemalloc.start()
    for number in range(300):
        name = f"{number}" + "n" * (400_000 // small)
        one = event(
            run=f"run {name}", job=f"job {name}", inputs=[dataset(f"bank.{name}", f"hive://{name}")]
        )
        changes_of(decode(encode(one)), Stamp(0, number, 0), kept_by)

    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 300 * MEBIBYTE // small


def test_large_results_evict_each_other() -> None:
    kept, made = Memory(), []

    def ask(number: int, size: int) -> None:
        def make() -> bytes:
            made.append(number)
            return bytes(size)

        kept.result((number,), make, len)

    for number in [*range(300), *range(299, -1, -1)]:
        ask(number, MEBIBYTE // 2)
    asked_again = len(made) - 300
    ask(-1, LARGE + 1)
    ask(-1, LARGE + 1)

    assert 300 - asked_again <= RESULT_BYTES // (MEBIBYTE // 2)
    assert made[-2:] == [-1, -1]
