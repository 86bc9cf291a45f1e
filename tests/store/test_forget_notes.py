"""Annotations go with their subject and move to a rebuilt store."""

from datetime import UTC, datetime

from sqlalchemy import Engine

from strandline.core.openlineage.names import id_of
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.marquez.annotations import TAG, Author, Note, annotate, carry_over
from strandline.store.sql.engine import reading
from worlds.builders import dataset, event, rows, store

LAKE = "hive://lake"
KEPT = "SELECT entity_id, name FROM annotations"


def noted(name: str) -> Note:
    """A tag of a dataset."""
    return Note(id_of("dataset", LAKE, name), f"dataset:{LAKE}:{name}", TAG, name="pii")


def test_other_annotations_stay_and_move_to_a_rebuilt_store(
    engine: Engine, plain_engine: Engine
) -> None:
    store(engine, [event("COMPLETE", inputs=[dataset("shop.a")], outputs=[dataset("shop.b")])])
    with engine.begin() as connection:
        for name in ("shop.a", "shop.b"):
            annotate(connection, noted(name), Author(1, "ann"))
    gone = forget(
        engine,
        Subject("dataset", LAKE, "shop.a"),
        Requester(datetime.now(UTC), "tests"),
        execute=True,
    ).gone
    with reading(engine).connect() as source, plain_engine.begin() as target:
        carried = [carry_over(source, target) for _ in range(2)]
    found, log = (
        rows(plain_engine, KEPT),
        rows(plain_engine, "SELECT entity, actor FROM annotation_log"),
    )

    assert (gone["annotations"], gone["annotation_log"]) == (1, 1)
    assert rows(engine, KEPT) == [(noted("shop.b").entity_id, "pii")]
    assert found == rows(engine, KEPT)
    assert log == [(f"dataset:{LAKE}:shop.b", "ann")]
    assert carried == [2, 0]
