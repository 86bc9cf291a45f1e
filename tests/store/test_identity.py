"""Identity of datasets: names that denote one dataset, and the place of a table."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from strandline.store.ingest.name_patterns import (
    apply_alias,
    apply_patterns,
    planned_alias,
    planned_patterns,
)
from strandline.store.ingest.replay import replay
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage.lookup import dataset_of, node_called, node_of
from worlds.builders import (
    NOON,
    Json,
    dataset,
    encode,
    event,
    live,
    rows,
    store,
    symlink,
    until_waiting,
)

PATH, TABLE = ("/lake/bank.db/a", "hdfs://lake"), ("bank.a", "hive://metastore:9083")
BY_PATH = dataset(*PATH, symlinks=symlink(*TABLE))
BY_TABLE = dataset(*TABLE, symlinks=symlink(*PATH, type_="LOCATION"))
CHANGES = (
    "id",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
)  # of an Iceberg table, as a view has them
FEED = ("_change_type", "_commit_version", "_commit_timestamp")  # of Delta
ONE = "SELECT count(DISTINCT canonical_id) FROM datasets"


def test_a_path_with_a_table_symlink_and_the_reverse_are_one_dataset(engine: Engine) -> None:
    store(
        engine,
        [
            event("START", 1, "reader", inputs=[BY_PATH]),
            event("START", 2, "writer", outputs=[BY_TABLE]),
        ],
    )

    assert rows(engine, ONE) == [(1,)]
    assert live(engine) == {"reader": ["< bank.a"], "writer": ["> bank.a"]}


def test_symlink_may_arrive_after_both_names(engine: Engine) -> None:
    store(
        engine,
        [
            event("START", 1, "reader", inputs=[dataset(*PATH)]),
            event("START", 2, "writer", outputs=[dataset(*TABLE)]),
        ],
    )

    assert rows(engine, ONE) == [(2,)]

    store(engine, [event("OTHER", 3, "third", inputs=[BY_PATH])])

    assert rows(engine, ONE) == [(1,)]
    assert live(engine) == {"reader": ["< bank.a"], "writer": ["> bank.a"]}


def test_two_tables_over_one_topic_are_one_dataset(engine: Engine) -> None:
    topic = ("payments", "kafka://broker:9092")
    first = dataset("bank.first", "hive://m", symlinks=symlink(*topic, type_="LOCATION"))
    second = dataset(*topic, symlinks=symlink("bank.second", "hive://m"))
    store(
        engine,
        [event("START", 1, "one", outputs=[first]), event("START", 2, "two", inputs=[second])],
    )

    assert rows(engine, ONE) == [(1,)]
    query = "SELECT DISTINCT c.name FROM datasets d JOIN datasets c ON c.id = d.canonical_id"
    assert rows(engine, query) == [("payments",)]


def test_same_named_tables_in_two_warehouses_are_distinct(engine: Engine) -> None:
    places = [("/one/my_paimon_table", "s3a://w1"), ("/two/my_paimon_table", "s3a://w2")]
    tables = [dataset(*place, symlinks=symlink("db.my_paimon_table", place[1])) for place in places]
    store(engine, [event("START", inputs=tables)])

    assert rows(engine, ONE) == [(2,)]
    assert live(engine) == {"etl": ["< db.my_paimon_table", "< db.my_paimon_table"]}


def test_equal_session_names_do_not_merge_two_topics(engine: Engine) -> None:
    kafka, called = "kafka://broker:9092", "default_catalog.default_database.orders"
    topics = [
        dataset(name, kafka, symlinks=symlink(called, kafka)) for name in ("orders_eu", "orders_us")
    ]
    store(
        engine,
        [event("START", run, f"job_{run}", inputs=[topic]) for run, topic in enumerate(topics)],
    )

    assert rows(engine, "SELECT name FROM datasets") == [("orders_eu",), ("orders_us",)]
    assert live(engine) == {"job_0": ["< orders_eu"], "job_1": ["< orders_us"]}


def test_table_named_like_a_metadata_table_is_a_table(engine: Engine) -> None:
    catalog = {"name": "lake", "framework": "iceberg", "type": "hive"}
    names = ("lake.sales.files", "lake.sales.history", "lake.sales.orders.history")
    store(
        engine,
        [event("START", inputs=[dataset(name, "iceberg://x", catalog=catalog) for name in names])],
    )

    assert live(engine) == {"etl": ["< sales.files", "< sales.history", "< sales.orders"]}


@pytest.mark.parametrize(
    ("path", "called", "columns", "table"),
    [
        ("/lake/bank/orders/changes", "bank.orders.changes", CHANGES, "orders"),
        ("/lake/bank/changes", "bank.changes", CHANGES, "changes"),
        ("/lake/bank/orders/changes", "bank.orders.changes", ("id",), "changes"),
        ("/lake/bank/orders", "bank.orders.files", ("content", "file_path"), "orders"),
        ("/lake/bank/orders/files", "bank.orders.files", ("id",), "files"),
    ],
    ids=[
        "changes",
        "a table called changes",
        "one in a namespace",
        "files",
        "a table called files",
    ],
)
def test_a_part_of_a_table_is_read_as_the_table(
    engine: Engine, path: str, called: str, columns: tuple[str, ...], table: str
) -> None:
    schema = {"fields": [{"name": name, "type": "long"} for name in columns]}
    catalog = {"name": "lake", "framework": "iceberg", "type": "hadoop"}
    links = symlink(called, "file:/lake")
    store(
        engine,
        [event(inputs=[dataset(path, "file", symlinks=links, catalog=catalog, schema=schema)])],
    )

    assert rows(engine, 'SELECT "table" FROM source_job_lineage') == [(table,)]


def test_table_with_change_feed_columns_keeps_them(engine: Engine) -> None:
    """A read of Delta's change feed looks like a read of such a table."""
    schema = {"fields": [{"name": name, "type": "long"} for name in ("id", *FEED)]}
    kept = dataset("/shop/kept", "file", schema=schema)
    store(engine, [event(outputs=[kept]), event(run=2, job="reader", seconds=5, inputs=[kept])])

    held = (
        "SELECT count(*) FROM facets WHERE key = 'schema'",
        "SELECT count(*) FROM facet_sets WHERE key = 'schema'",
    )
    assert sum(rows(engine, one)[0][0] for one in held) == 1


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_glue_table_is_in_its_database(engine: Engine, partition: str) -> None:
    glue = symlink("table/sales/orders", f"arn:{partition}:glue:eu-west-1:123456789012")
    store(
        engine,
        [
            event(
                "START",
                inputs=[dataset("wh/orders", "s3://w", symlinks=glue, catalog={"name": "lake"})],
            )
        ],
    )

    assert rows(engine, 'SELECT catalog, database, "table" FROM source_job_lineage') == [
        ("lake", "sales", "orders")
    ]


def test_place_is_the_catalog_name_and_the_parts_of_the_table(engine: Engine) -> None:
    catalog = {"name": "lake", "framework": "iceberg", "type": "jdbc"}
    store(
        engine,
        [
            event(
                inputs=[
                    dataset(*PATH, symlinks=symlink("x.bank.a", "jdbc:sqlite"), catalog=catalog),
                    dataset("project.set.table", "bigquery"),
                    dataset("public.users", "postgres://db:5432"),
                    dataset("/tmp/file", "file"),
                    dataset("a.topic", "kafka://b:9092"),
                ]
            )
        ],
    )

    assert rows(engine, 'SELECT catalog, database, "table" FROM source_job_lineage') == [
        ("file", "", "/tmp/file"),
        ("kafka://b:9092", "", "a.topic"),
        ("lake", "x.bank", "a"),
        ("postgres://db:5432", "public", "users"),
        ("project", "set", "table"),
    ]


def test_catalog_with_long_properties_is_accepted(engine: Engine) -> None:
    properties = {f"property-{number}": "x" * 100 for number in range(50)}
    catalog = {
        "name": "lake",
        "framework": "iceberg",
        "type": "hive",
        "catalogProperties": properties,
    }
    store(engine, [event("START", inputs=[dataset(*TABLE, catalog=catalog)])])
    store(
        engine,
        [
            event(
                "OTHER",
                2,
                "other",
                seconds=1,
                inputs=[dataset(*TABLE, catalog=catalog | {"name": "sea"})],
            )
        ],
    )

    assert rows(engine, "SELECT catalog FROM source_job_lineage") == [("sea",)]


def test_catalog_may_be_reported_later_and_by_the_other_name(engine: Engine) -> None:
    store(engine, [event("START", inputs=[BY_PATH])])
    catalog = {"name": "lake", "framework": "iceberg", "type": "hive"}
    store(engine, [event("OTHER", 2, "other", inputs=[dataset(*TABLE, catalog=catalog)])])

    assert rows(engine, "SELECT catalog FROM source_job_lineage") == [("lake",)]


def test_repeated_catalog_counts_again_for_any_writer(engine: Engine) -> None:
    said = [
        dataset(*TABLE, catalog={"name": name, "framework": "iceberg", "type": "hive"})
        for name in ("one", "two")
    ]
    writers = [Caches(), Caches()]

    def write(writer: int, which: int, seconds: int) -> None:
        one = event("START", seconds=seconds, inputs=[said[which]])
        store(engine, [one], writer=writers[writer])

    write(0, 0, 1)
    write(1, 1, 2)
    assert rows(engine, "SELECT catalog FROM source_job_lineage") == [("two",)]

    write(0, 0, 3)
    assert rows(engine, "SELECT catalog FROM source_job_lineage") == [("one",)]


def test_deleted_symlinks_separate_names_until_restated(engine: Engine) -> None:
    other = event("START", 2, "writer", outputs=[dataset(*TABLE)])
    gone = dataset(*PATH, symlinks={"_producer": "p", "_schemaURL": "s", "_deleted": True})
    store(engine, [event("START", seconds=1, inputs=[BY_PATH]), other])
    assert rows(engine, ONE) == [(1,)]

    store(engine, [event("RUNNING", seconds=3, inputs=[gone])])
    assert rows(engine, ONE) == [(2,)]

    store(engine, [event("RUNNING", seconds=2, inputs=[BY_PATH])])
    assert rows(engine, ONE) == [(2,)]

    store(engine, [event("RUNNING", seconds=4, inputs=[BY_PATH])])
    assert rows(engine, ONE) == [(1,)]


def test_manual_joins_outlive_deleted_symlinks(engine: Engine) -> None:
    store(
        engine,
        [event("START", inputs=[BY_PATH]), event("START", 2, inputs=[dataset("/copy", "file")])],
    )
    with engine.begin() as connection:
        apply_alias(connection, ("hdfs://lake", "/lake/bank.db/a"), ("file", "/copy"))

    gone = dataset(*PATH, symlinks={"_producer": "p", "_schemaURL": "s", "_deleted": True})
    store(engine, [event("RUNNING", seconds=3, inputs=[gone])])

    groups = "SELECT name FROM datasets WHERE canonical_id = (SELECT id FROM datasets WHERE name = '/copy') ORDER BY name"
    assert rows(engine, groups) == [("/copy",), ("/lake/bank.db/a",)]


def test_replay_keeps_manual_joins(engine: Engine, plain_engine: Engine) -> None:
    store(
        engine,
        [event("START", inputs=[BY_PATH]), event("START", 2, inputs=[dataset("/copy", "file")])],
    )
    with engine.begin() as connection:
        apply_alias(connection, ("hdfs://lake", "/lake/bank.db/a"), ("file", "/copy"))

    with engine.connect() as connection:
        count = replay(connection, plain_engine)

    labels = "SELECT namespace, name, canonical_id FROM datasets ORDER BY namespace, name"
    assert (count, rows(plain_engine, labels)) == (2, rows(engine, labels))
    assert rows(plain_engine, ONE) == [(1,)]


def test_replay_keeps_name_patterns(engine: Engine, plain_engine: Engine) -> None:
    with engine.begin() as connection:
        apply_alias(connection, ("hdfs://lake", "/lake/t/2026-11-19"), ("file", "/copy"))
        apply_patterns(connection, [r"/\d{4}-\d\d-\d\d$"])
    store(
        engine,
        [
            event(
                "START",
                inputs=[dataset("/lake/t/2026-11-20", "hdfs://lake"), dataset("/copy", "file")],
            )
        ],
    )

    with engine.connect() as connection:
        replay(connection, plain_engine)

    assert live(plain_engine) == live(engine) == {"etl": ["< /copy"]}


def test_patterns_can_be_previewed(engine: Engine) -> None:
    days = [dataset(f"/lake/t/{day}", "hdfs://lake") for day in ("2026-11-20", "2026-11-21")]
    store(engine, [event("START", inputs=[*days, dataset("/lake/u", "hdfs://lake")])])

    with engine.begin() as connection:
        plan = planned_patterns(connection, [r"/\d{4}-\d\d-\d\d$"])
        assert [(one.name, one.new_name) for one in plan] == [
            ("/lake/t/2026-11-20", "/lake/t"),
            ("/lake/t/2026-11-21", "/lake/t"),
        ]
    assert rows(engine, ONE) == [(3,)]

    with engine.begin() as connection:
        assert apply_patterns(connection, [r"/\d{4}-\d\d-\d\d$"]) == 2
    assert live(engine) == {"etl": ["< /lake/t", "< /lake/u"]}


def test_stripped_dataset_is_found_by_its_original_name(engine: Engine) -> None:
    with engine.begin() as connection:
        apply_patterns(connection, [r"/\d{4}-\d\d-\d\d$"])
        apply_alias(connection, ("hdfs://lake", "/lake/t/2026-11-22"), ("hive://m", "bank.t"))
    store(engine, [event("START", inputs=[dataset("/lake/t/2026-11-20", "hdfs://lake")])])

    with engine.connect() as connection:
        by_name = dataset_of(connection, "hdfs://lake", "/lake/t/2026-11-20")
        by_node = node_of(connection, "dataset:hdfs://lake:/lake/t/2026-11-21")
        assert by_name == by_node == dataset_of(connection, "hive://m", "bank.t")


@pytest.mark.postgres
def test_applying_patterns_waits_for_running_batches(postgres_engine: Engine) -> None:
    told = event("START", inputs=[dataset("/lake/t/2026-11-20", "hdfs://lake")])

    with ThreadPoolExecutor(1) as pool, postgres_engine.begin() as connection:
        take(connection, [Record(encode(told), NOON)], Caches())
        applied = pool.submit(apply_in_time, postgres_engine)
        until_waiting(postgres_engine, applied)
        connection.commit()

        assert applied.result() == 1


def apply_in_time(engine: Engine) -> int:
    with engine.begin() as connection:
        return apply_patterns(connection, [r"/\d{4}-\d\d-\d\d$"])


def test_joins_can_be_previewed(engine: Engine) -> None:
    store(
        engine,
        [event("START", inputs=[BY_PATH]), event("START", 2, inputs=[dataset("/copy", "file")])],
    )

    with engine.begin() as connection:
        plan = planned_alias(connection, ("file", "/copy"), ("hdfs://lake", "/lake/bank.db/a"))

    assert [(one.name, one.new_name) for one in plan] == [("/copy", "/lake/bank.db/a")]
    assert rows(engine, "SELECT count(*) FROM dataset_aliases") == [(1,)]


def test_preview_considers_deleted_symlinks(engine: Engine) -> None:
    z, taken_back = ("/z", "file"), {"_deleted": True}
    store(engine, [event("START", inputs=[dataset(*z, symlinks=symlink("db.a"))])])
    store(engine, [event("RUNNING", seconds=1, inputs=[dataset(*z, symlinks=taken_back)])])

    with engine.begin() as connection:
        plan = planned_alias(connection, ("hive://lake", "db.a"), ("file", "/q"))
        apply_alias(connection, ("hive://lake", "db.a"), ("file", "/q"))

    assert [(one.name, one.new_name) for one in plan] == [("db.a", "/q")]
    joined = "SELECT d.name, c.name FROM datasets d JOIN datasets c ON c.id = d.canonical_id AND c.id <> d.id"
    assert rows(engine, joined) == [("db.a", "/q")]


@pytest.mark.parametrize(
    "catalog", [None, {"name": "lake", "framework": "iceberg", "type": "hive"}]
)
def test_parts_of_names_are_kept_apart(engine: Engine, catalog: Json | None) -> None:
    """`a`.`b.t`, `a.b`.`t` and a.b.t of three parts are three tables."""
    facets: dict[str, Json] = {} if catalog is None else {"catalog": catalog}
    names = ("lake.a.`b.t`", "lake.`a.b`.t", "lake.a.b.t")
    store(
        engine,
        [event("START", inputs=[dataset(name, "hive://lake", None, **facets) for name in names])],
    )

    assert rows(engine, 'SELECT catalog, database, "table" FROM source_job_lineage') == [
        ("lake", "`a.b`", "t"),
        ("lake", "a", "b.t"),
        ("lake", "a.b", "t"),
    ]
    with engine.connect() as connection:
        assert [node_called(connection, name).name for name in names] == list(names)


def test_backquotes_that_a_name_does_not_need_do_not_count(engine: Engine) -> None:
    store(engine, [event("START", inputs=[dataset("`a`.`t`"), dataset("a.t")])])

    assert rows(engine, ONE) == [(1,)]
