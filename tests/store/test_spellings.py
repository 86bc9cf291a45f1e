"""One place in a bucket is one dataset, however producers spell it."""

import pytest
from sqlalchemy import Engine

from strandline.api.writer.senders import Senders
from strandline.core.access.granted import Access
from strandline.errors import AmbiguousError, ForbiddenError
from strandline.store.ingest.take import validated
from strandline.store.lineage.lookup import dataset_called, dataset_of, job_called, node_called
from worlds.builders import NOON, Json, dataset, encode, event, rows, store, symlink

PLAIN = ("bank/a", "s3://lake")
SPELLINGS = [
    ("bank/a", "s3a://lake"),
    ("bank/a", "s3n://lake"),
    ("bank/a", "S3A://lake"),
    ("/bank/a", "s3://lake"),
    ("bank/a/", "s3://lake"),
    ("/bank/a/", "s3a://lake/"),
]
GROUPS = "SELECT count(DISTINCT canonical_id) FROM datasets"


def named_by(how: str, name: str, namespace: str) -> Json:
    """Return an event that names a dataset as an output, as a column's origin or as a location."""
    if how == "output":
        return event(run=2, outputs=[dataset(name, namespace)])
    if how == "location":
        other = dataset("bank.t", symlinks=symlink(name, namespace, "LOCATION"))
        return event(run=2, outputs=[other])
    origin = {"namespace": namespace, "name": name, "field": "c"}
    made = dataset("bank.t", columnLineage={"fields": {"c": {"inputFields": [origin]}}})
    return event(run=2, outputs=[made])


@pytest.mark.parametrize("how", ["output", "location", "origin"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_spellings_of_one_place_are_one_dataset(
    sqlite_engine: Engine, spelling: tuple[str, str], how: str
) -> None:
    store(sqlite_engine, [named_by(how, *spelling), event(inputs=[dataset(*PLAIN)])], size=1)

    with sqlite_engine.connect() as connection:
        found = dataset_of(connection, spelling[1], spelling[0])
        assert found == dataset_of(connection, PLAIN[1], PLAIN[0])


def test_a_spelling_stays_as_a_name_of_the_dataset(engine: Engine) -> None:
    store(engine, [event(inputs=[dataset("/bank/a/", "s3a://lake")])])

    assert rows(engine, GROUPS) == [(1,)]
    assert rows(engine, "SELECT namespace, name, named FROM datasets") == [
        ("s3://lake", "bank/a", 0),
        ("s3a://lake", "/bank/a/", 1),
    ]


def test_deleted_symlinks_do_not_part_spellings(engine: Engine) -> None:
    gone = dataset("/bank/a", "s3a://lake", symlinks={"_deleted": True})
    store(engine, [event(inputs=[gone])])

    assert rows(engine, GROUPS) == [(1,)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("/bank/a", "file"), ("bank/a", "file")),
        (("a/", "kafka://b:1"), ("a", "kafka://b:1")),
        (("bank/a", "s3://lake"), ("bank/a", "gs://lake")),
        (("bank/A", "s3://lake"), ("bank/a", "s3://lake")),
    ],
)
def test_other_names_stay_apart(
    engine: Engine, one: tuple[str, str], other: tuple[str, str]
) -> None:
    store(engine, [event(inputs=[dataset(*one), dataset(*other)])])

    assert rows(engine, GROUPS) == [(2,)]


def test_a_dataset_is_found_in_a_spelling_that_no_event_used(engine: Engine) -> None:
    store(engine, [event(inputs=[dataset(*PLAIN)])])

    with engine.connect() as connection:
        assert dataset_of(connection, "s3a://lake", "/bank/a").name == "bank/a"


@pytest.mark.parametrize(
    ("granted", "refused"), [("s3a://lake", "s3://lake"), ("s3a://*", "s3://lake")]
)
def test_a_key_of_one_spelling_writes_nothing_for_the_others(
    sqlite_engine: Engine, granted: str, refused: str
) -> None:
    """A statement under one spelling counts for the place, which may be another key's."""
    record = validated(encode(event(outputs=[dataset("bank/a", "s3a://lake")])), NOON)

    access = Access("key", frozenset(("ingest",)), ("tests", granted))
    with pytest.raises(ForbiddenError, match=f"may not write namespace '{granted[:6]}"):
        Senders(sqlite_engine).permitted(record, access)

    both = Access("key", frozenset(("ingest",)), ("tests", granted, refused))
    assert Senders(sqlite_engine).permitted(record, both) == record


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("s3a://lake/bank/a/", "dataset:s3://lake:bank/a"),
        ("s3://lake:bank/a", "dataset:s3://lake:bank/a"),
        ("file:///exports/a.csv", "dataset:file:/exports/a.csv"),
        ("hdfs://name:8020/bank/a", "dataset:hdfs://name:8020:/bank/a"),
        ("kafka://broker:9092/payments", "dataset:kafka://broker:9092:payments"),
        ("tests:load", "job:tests:load"),
    ],
)
def test_name_after_its_namespace_is_found(engine: Engine, text: str, node: str) -> None:
    places = [
        dataset("bank/a", "s3://lake"),
        dataset("bank/a", "s3://other"),
        dataset("/bank/a", "hdfs://name:8020"),
        dataset("/exports/a.csv", "file"),
        dataset("payments", "kafka://broker:9092"),
    ]
    elsewhere = event("COMPLETE", 2, "load") | {"job": {"namespace": "elsewhere", "name": "load"}}
    store(engine, [event("COMPLETE", 1, "load", 0, places), elsewhere], NOON)

    of_kind = job_called if node.startswith("job:") else dataset_called
    with engine.connect() as connection:
        assert str(node_called(connection, text)) == node
        assert str(of_kind(connection, text)) == node
        with pytest.raises(AmbiguousError):
            node_called(connection, "load" if node.startswith("job:") else "bank/a")
