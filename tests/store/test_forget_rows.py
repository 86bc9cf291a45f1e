"""Forgetting in a store that keeps a row for each relation of each run, as stores from before schema 0035 do."""

import pytest
from sqlalchemy import Engine

from store.test_forget import ASKED, LAKE, SECRET, other_engine, received, shown, write
from strandline.store.forgetting.forget import Subject, forget
from strandline.store.ingest.to_templates import to_rows, to_templates
from worlds.builders import rows

__all__ = ["other_engine"]


@pytest.mark.parametrize("without", [SECRET, "sums", "totals"])
def test_what_goes_from_a_store_with_templates_goes_from_one_with_rows(
    engine: Engine, other_engine: Engine, without: str
) -> None:
    to_rows(engine)
    write(engine, received())
    write(other_engine, received({without}))
    name = LAKE if without == SECRET else "tests"

    counts = forget(engine, Subject("dataset" if without == SECRET else "job", name, without), ASKED, execute=True)
    kept = rows(engine, "SELECT (SELECT count(*) FROM relations), (SELECT count(*) FROM run_templates)")
    to_templates(engine)

    assert counts.gone["relations"] > 0
    assert kept[0][0] > 0 == kept[0][1]
    assert shown(engine) == shown(other_engine)
