"""The map of all lineage: few boxes whose counts are those of the whole store."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from strandline.core.access.granted import Access
from strandline.core.openlineage.times import micros_of
from strandline.core.places import MOST_BOXES
from strandline.errors import NotFoundError, QuestionError
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import datasets_page
from strandline.store.lineage.run_state import View
from strandline.store.marquez.annotations import Author, Note, annotate
from strandline.store.questions.lineage_map import lineage_map
from strandline.store.schema.annotation_tables import DELETED
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.builders import NOON, Json, dataset, event, parent, store, symlink

NOW = micros_of(NOON + timedelta(hours=1))
Edges = dict[tuple[str, str], int]


def shown(engine: Engine, *opened: str, now: int = NOW, past: bool = False) -> Json:
    with reading(engine).connect() as connection:
        return lineage_map(connection, View(now, past=past), opened)


def sizes(found: Json) -> dict[str, int]:
    return {node["name"]: node["datasets"] for node in found["nodes"]}


def edges(found: Json) -> Edges:
    names = {node["id"]: node["name"] for node in found["nodes"]}
    return {(names[one["source"]], names[one["target"]]): one["jobs"] for one in found["edges"]}


def path(name: str, bucket: str = "s3://lake") -> Json:
    return dataset(name, bucket)


def company() -> list[Json]:
    """Two tables of a catalog, five files of a bucket, a topic."""
    return [
        event("COMPLETE", 1, "ingest", 1, [path("in", "kafka://b:9092")], [path("raw/2026/a"), path("raw/2026/b")]),
        event("COMPLETE", 2, "clean", 2, [path("raw/2026/a"), path("raw/2026/b")], [path("clean/a")]),
        event("FAIL", 3, "clean_b", 3, [path("raw/2026/b")], [path("clean/b")]),
        event("COMPLETE", 4, "report", 4, [path("clean/a"), path("clean/b")], [dataset("bank.report")]),
        event("START", 5, "again", 5, [dataset("bank.report")], [dataset("bank.copy")]),
    ]  # fmt: skip


def test_first_level_has_catalogs_and_buckets_with_the_jobs_between_them(engine: Engine) -> None:
    store(engine, company(), NOON)

    found = shown(engine)
    assert sizes(found) == {"s3://lake": 4, "hive://lake.bank": 2, "kafka://b:9092/in": 1}
    assert found["totals"] == {
        "datasets": 7,
        "jobs": 5,
        "states": {"NONE": 1, "COMPLETE": 4, "FAIL": 1, "START": 1},
    }
    lake = found["nodes"][0]
    assert (lake["type"], lake["jobs"], lake["jobsInside"]) == ("namespace", 4, 2)
    assert lake["states"] == {"COMPLETE": 3, "FAIL": 1}
    assert edges(found) == {
        ("kafka://b:9092/in", "s3://lake"): 1,
        ("s3://lake", "hive://lake.bank"): 1,
    }
    assert (found["complete"], found["truncatedBy"], found["frames"]) == (True, None, [])


def test_box_that_is_opened_becomes_a_frame_with_its_folders(engine: Engine) -> None:
    store(engine, company(), NOON)
    lake = shown(engine)["nodes"][0]["id"]

    found = shown(engine, lake)
    assert [(frame["id"], frame["datasets"], frame["jobs"]) for frame in found["frames"]] == [
        (lake, 4, 4)
    ]
    inside = {node["name"]: node for node in found["nodes"] if node["within"] == lake}
    assert {name: (node["type"], node["datasets"]) for name, node in inside.items()} == {
        "raw/2026": ("folder", 2),  # a folder with one child only is passed over
        "clean": ("folder", 2),
    }
    assert edges(found)["raw/2026", "clean"] == 2

    raw = shown(engine, inside["raw/2026"]["id"], inside["clean"]["id"])
    leaves = [node for node in raw["nodes"] if node["type"] == "dataset"]
    assert {node["id"] for node in leaves} >= {
        "dataset:s3://lake:raw/2026/a",
        "dataset:s3://lake:clean/a",
    }
    assert edges(raw)["a", "a"] == 1


def test_folder_that_is_a_dataset_too_holds_itself(engine: Engine) -> None:
    tables = [path("raw"), path("raw/a"), path("raw/b"), path("other")]
    store(engine, [event("COMPLETE", 1, "load", 1, [], tables)], NOON)

    found = shown(engine)
    assert [(node["name"], node["type"], node["datasets"]) for node in found["nodes"]] == [
        ("raw", "folder", 2),
        ("other", "dataset", 1),
        ("raw", "dataset", 1),
    ]


def random_history(chance: random.Random) -> list[Json]:
    """Jobs that read and write tables of two catalogs and paths of three buckets."""
    names = [
        *(dataset(f"db{one % 4}.t{one}", f"hive://m{one % 2}") for one in range(40)),
        *(path(f"p{one % 3}/q{one % 7}/f{one}", f"s3://b{one % 3}") for one in range(60)),
    ]
    return [
        event(
            chance.choice(["COMPLETE", "COMPLETE", "FAIL", "START"]),
            number,
            f"job{chance.randrange(60)}",
            number,
            chance.sample(names, chance.randrange(4)),
            chance.sample(names, chance.randrange(3)),
        )
        for number in range(1, 120)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_a_slow_count_over_the_events(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    history = random_history(chance)
    store(engine, history, NOON)

    opened: list[str] = []
    for _ in range(6):
        found = shown(engine, *opened)
        assert len(found["nodes"]) <= MOST_BOXES
        assert sum(node["datasets"] for node in found["nodes"]) == found["totals"]["datasets"]
        box_of = places(found, history)
        expected = slow_edges(history, box_of)
        assert {(one["source"], one["target"]): one["jobs"] for one in found["edges"]} == expected
        inner = [node["id"] for node in found["nodes"] if node["type"] not in ("dataset", "rest")]
        if not inner:
            break
        opened = [*opened[-2:], chance.choice(inner)]


def places(found: Json, history: Iterable[Json]) -> dict[str, str]:
    """Map each dataset's node to the box whose path its own begins with; the longest counts."""
    boxes: set[str] = {node["id"] for node in found["nodes"] if node["type"] != "rest"}
    rests: dict[str, str] = {
        node["within"] or "": node["id"] for node in found["nodes"] if node["type"] == "rest"
    }

    def box_of(table: Json) -> str:
        namespace, name = table["namespace"], table["name"]
        parts = name.split("/" if namespace.startswith("s3:") else ".")
        folders = [f"namespace:{namespace.replace('/', '%2F')}", *parts[:-1]]
        around = ["/".join(folders[:length]) for length in range(len(folders), -1, -1)]
        node = f"dataset:{namespace}:{name}"
        if node in boxes:
            return node
        return next(rests.get(place, place) for place in around if place in boxes or place in rests)

    tables = [table for one in history for table in (*one["inputs"], *one["outputs"])]
    return {f"dataset:{table['namespace']}:{table['name']}": box_of(table) for table in tables}


def slow_edges(history: Iterable[Json], box_of: dict[str, str]) -> Edges:
    reads: dict[str, set[str]] = {}
    writes: dict[str, set[str]] = {}
    for one in history:
        for direction, of_job in (("inputs", reads), ("outputs", writes)):
            boxes = of_job.setdefault(one["job"]["name"], set())
            boxes.update(
                box_of[f"dataset:{table['namespace']}:{table['name']}"] for table in one[direction]
            )
    counted: Edges = Counter()
    for job, sources in reads.items():
        for source in sources:
            for target in writes[job] - {source}:
                counted[source, target] += 1
    return dict(counted)


def test_rest_of_a_frame_is_opened_page_by_page(engine: Engine) -> None:
    files = [path(f"raw/f{number:03}") for number in range(100)]
    store(engine, [event("COMPLETE", 1, "load", 1, [path("source")], files)], NOON)
    (folder,) = (node["id"] for node in shown(engine)["nodes"] if node["type"] == "folder")

    seen: list[str] = []
    opened: str | None = folder
    while opened is not None:
        found = shown(engine, opened)
        assert len(found["nodes"]) <= MOST_BOXES
        assert found["totals"]["datasets"] == sum(node["datasets"] for node in found["nodes"])
        inside = [node for node in found["nodes"] if node["within"] == folder]
        seen += [node["name"] for node in inside if node["type"] == "dataset"]
        rests = [node["id"] for node in inside if node["type"] == "rest"]
        opened = next((id_ for id_ in rests if not id_.endswith("*0")), None)
    assert seen == [f"f{number:03}" for number in range(100)]


def test_unknown_box_is_not_found_and_too_many_are_refused(engine: Engine) -> None:
    store(engine, company(), NOON)
    with pytest.raises(NotFoundError, match="nothing is at 'catalog:none'"):
        shown(engine, "catalog:none")

    pairs = [path(f"d{number}/{leaf}") for number in range(50) for leaf in "ab"]
    store(engine, [event("COMPLETE", 9, "wide", 9, [], pairs)], NOON)
    with pytest.raises(QuestionError, match="more than 40 boxes are open"):
        shown(engine, *(f"namespace:s3:%2F%2Flake/d{number}" for number in range(50)))


def test_table_that_a_failed_command_was_to_create_is_not_on_the_map(engine: Engine) -> None:
    made = dataset("bank.made", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    store(engine, [event("FAIL", 1, "ctas", 1, [dataset("bank.a")], [made])], NOON)

    assert shown(engine)["totals"]["datasets"] == 1 == len(names_of_list(engine))


def names_of_list(engine: Engine) -> list[str]:
    with reading(engine).connect() as connection:
        page = datasets_page(connection, Filter(), NOW, 1000, None)
    return [one["id"] for one in page["items"]]


def test_other_names_of_a_dataset_are_counted_once(engine: Engine) -> None:
    linked = dataset("/lake/a", "file", symlinks=symlink("lake.bank.a", "hive://lake"))
    store(
        engine,
        [
            event("COMPLETE", 1, "load", 1, [], [linked]),
            event("COMPLETE", 2, "use", 2, [dataset("lake.bank.a")], [path("x/b")]),
        ],
        NOON,
    )
    found = shown(engine)

    assert found["totals"]["datasets"] == 2 == len(names_of_list(engine))
    assert list(edges(found).values()) == [1]


def test_micro_batches_count_for_their_query(engine: Engine) -> None:
    kind = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
    application = parent(100, "app")
    store(
        engine,
        [
            event("START", 100, "app", 0),
            *(
                event("COMPLETE", run, f"app.batch_{run}", run, [path("in/a")], [path("out/b")],
                      facets=application, job_facets=kind)
                for run in (1, 2, 3)
            ),
        ],
        NOON,
    )  # fmt: skip

    assert shown(engine)["totals"]["jobs"] == 1
    assert list(edges(shown(engine)).values()) == [1]


def test_deleted_job_leaves_the_map(engine: Engine) -> None:
    store(engine, company(), NOON)
    with engine.connect() as connection:
        query = "SELECT id FROM jobs WHERE name = 'report'"
        (job,) = connection.exec_driver_sql(query).scalars()
    with engine.begin() as connection:
        note = Note(entity="job:tests:report", entity_id=job, kind=DELETED)
        annotate(connection, note, Author(NOW - 1, "somebody"))

    assert ("s3://lake", "hive://lake.bank") not in edges(shown(engine))


def test_map_of_a_moment_has_what_had_been_reported_by_then(engine: Engine) -> None:
    store(engine, company(), NOON)
    then = shown(engine, now=micros_of(NOON + timedelta(seconds=2.5)), past=True)

    assert then["totals"]["datasets"] == 4
    assert then["totals"]["states"] == {"NONE": 1, "COMPLETE": 3}
    later = shown(engine, now=micros_of(NOON + timedelta(seconds=30)), past=True)
    assert later["nodes"] == shown(engine)["nodes"]
    assert later["edges"] == shown(engine)["edges"]


def test_key_sees_its_namespaces_and_how_much_lies_beside(engine: Engine) -> None:
    store(engine, company(), NOON)
    limited = narrowed(engine, Access("key", frozenset(), ("tests", "s3://lake")))

    found = shown(limited)
    assert found["totals"]["datasets"] == 4
    assert (found["complete"], found["truncatedBy"]) == (False, "access")
    assert found["hidden"]["access"] == 3


def test_empty_store_has_an_empty_map(engine: Engine) -> None:
    found = shown(engine)

    assert (found["nodes"], found["edges"], found["totals"]["datasets"]) == ([], [], 0)
