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


def tagged(name: str, field: str, tag: str, value: str) -> Note:
    """A tag of another dataset's column."""
    entity = id_of("dataset", "lake", name), f"dataset:lake:{name}"
    return Note(*entity, TAG, field=field, name=tag, value=value)


def test_notes_of_others_go_only_if_they_are_called_after_it_with_its_namespace(
    engine: Engine,
) -> None:
    """`prod` has a dataset `orders`; other namespaces begin with `prod`, other columns are `orders`."""
    made = [{"namespace": "prod", "name": "orders", "facets": {}}]
    store(engine, [event("COMPLETE", outputs=made)])
    other = id_of("dataset", "prod2", "shop.orders"), "dataset:prod2:shop.orders"
    notes = [
        tagged("x.summary", "orders", "pii", "production reports"),
        tagged("x.daily", "orders", "pii", "orders, as prod reports them"),
        tagged("x.orders", "", "orders", "as prod reports them."),
        tagged("x.copy", "", "copy of prod.orders", ""),
        tagged("x.copy", "", "copy", "of orders in prod."),
        Note(*other, TAG, name="pii"),
    ]
    with engine.begin() as connection:
        for one in notes:
            annotate(connection, one, Author(1, "prod"))
    who = Requester(datetime.now(UTC), "tests")
    forget(engine, Subject("namespace", "prod"), who, execute=True)
    kept = "SELECT field, name, value FROM annotations ORDER BY field, name, value"
    logged = "SELECT entity, field, name, value FROM annotation_log ORDER BY entity, field, name"

    assert rows(engine, kept) == [
        ("", "copy", "of [forgotten] in [forgotten]."),
        ("", "orders", "as [forgotten] reports them."),
        ("", "pii", ""),
        ("orders", "pii", "[forgotten], as [forgotten] reports them"),
        ("orders", "pii", "production reports"),
    ]
    assert rows(engine, logged) == [
        ("dataset:lake:x.copy", "", "copy", "of [forgotten] in [forgotten]."),
        ("dataset:lake:x.daily", "orders", "pii", "[forgotten], as [forgotten] reports them"),
        ("dataset:lake:x.orders", "", "orders", "as [forgotten] reports them."),
        ("dataset:lake:x.summary", "orders", "pii", "production reports"),
        ("dataset:prod2:shop.orders", "", "pii", ""),
    ]
