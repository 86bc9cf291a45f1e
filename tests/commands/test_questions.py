"""Answers of `impact` and `paths` name what they mean."""

import pytest
from sqlalchemy import Engine

from fixtures.commands import command_on
from worlds.builders import NOON, dataset, event, store


@pytest.mark.parametrize(
    "asked",
    [
        ("impact", "dataset:gs://raw:data.csv"),
        ("paths", "dataset:gs://raw:data.csv", "dataset:gs://gold:data.csv"),
    ],
)
def test_tables_of_one_name_in_two_buckets_are_told_apart(
    sqlite_engine: Engine, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    copied = dataset("data.csv", "gs://raw"), dataset("data.csv", "gs://gold")
    store(sqlite_engine, [event("COMPLETE", 1, "copy", 1, [copied[0]], [copied[1]])], NOON)
    url = sqlite_engine.url.render_as_string(hide_password=False)

    _, out, err = command_on(url, capsys)(*asked)

    assert err == ""
    assert "gs://raw/data.csv" in out
    assert "gs://gold/data.csv" in out
