"""Rollbacks beside jobs without barriers: they are listed, and must not run meanwhile."""

import pytest

from fixtures.versions_server.events import LAKE, appended, committed, ended, started
from fixtures.versions_server.server import JSON, Server, tables
from strandline.core.versions.rollback import plan
from strandline.errors import RefusedError
from strandline.execution.rollback import Open, begin, open_rollback
from strandline.runtime.follower import Follower
from strandline.store.schema.version_tables import open_rollbacks


@pytest.fixture
def chain(server: Server) -> Server:
    """A -> b by a tracked job; `ingest` fills a, `copy` makes db.plain of it and `report` reads b.

    Of them nobody has barriers.
    """
    server.group("d", "db.a")
    server.post(
        started("to_b", 0, ["db.a"], ["db.b"], group="d"),
        appended("ingest", 1, "db.a", "1"),
        appended("ingest", 2, "db.a", "2", "1"),
        committed("to_b", 5, 1, {"db.a": "1"}, {"db.b": "11"}, group="d"),
        committed("to_b", 6, 2, {"db.a": "2"}, {"db.b": "12"}, group="d"),
        started("copy", 3, ["db.a"], ["db.plain"], group=None),
        started("report", 4, ["db.b"], [], group=None),
    )
    return server


def rolled_back(server: Server) -> JSON:
    """The plan to take a back to barrier 1."""
    return server.ask("/rollbacks", tables("db.a")[0] | {"barrier": 1})


def test_plan_names_outside_jobs_and_the_tables_that_they_leave_unchanged(chain: Server) -> None:
    found = rolled_back(chain)

    assert [one["name"] for one in found["tables"]] == ["db.a", "db.b"]
    outside = {one["job"]["name"]: one for one in found["outside"]}
    assert {
        name: [[table["name"] for table in one[how]] for how in ("writes", "reads", "makes")]
        for name, one in outside.items()
    } == {
        "copy": [[], ["db.a"], ["db.plain"]],
        "ingest": [["db.a"], [], []],
        "report": [[], ["db.b"], []],
    }
    assert {name: one["running"] for name, one in outside.items()} == {
        "copy": True,
        "ingest": False,
        "report": True,
    }

    chain.post(ended("report", 20, "COMPLETE"), ended("copy", 20, "COMPLETE"))
    assert {one["job"]["name"]: one["running"] for one in rolled_back(chain)["outside"]} == {
        "copy": False,
        "ingest": False,
    }


def test_rollback_does_not_begin_while_an_outside_job_runs(chain: Server) -> None:
    follower = Follower(chain.engine)
    chain.post(ended("to_b", 20, "COMPLETE"), ended("report", 20, "COMPLETE"))
    with follower.model() as model:
        wanted = Open((LAKE, "db.a"), 1, plan(model, (LAKE, "db.a"), 1))

    with pytest.raises(
        RefusedError, match=r"job copy \(running\) reads db\.a; its output stays as it is"
    ):
        begin(follower, wanted)
    chain.post(ended("copy", 21, "COMPLETE"))
    begin(follower, wanted)

    with chain.engine.connect() as connection, follower.model() as model:
        assert open_rollback(connection, model, "d") == wanted
        assert connection.execute(open_rollbacks.select()).all() != []


def test_rollback_is_rejected_if_the_base_table_cannot_go_back(chain: Server) -> None:
    """A full plan clears what was made from the base tables and replays them as they are.

    It would leave the wrong rows.
    """
    body = tables("db.a")[0] | {
        "barrier": 1,
        "lostState": [{"namespace": "default", "name": "to_b"}],
    }

    problem = chain.ask("/rollbacks", body, 409)

    assert problem["code"] == "base_table"
    assert chain.ask("/rollbacks", body | {"barrier": 2})["kind"] == "full"
