"""Alerts fire once and recover once, over real webhooks; a dead target loses and delays nothing."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from fixtures.contract_servers.server import Asked, ContractServer, Fault
from fixtures.versions_server.events import (
    EPOCH,
    committed,
    ended,
    event,
    facet,
    run_id,
    started,
    two_streams,
)
from fixtures.versions_server.server import Server
from fixtures.waiting import wait_until
from strandline.alerts.conditions import model_troubles, store_troubles
from strandline.alerts.webhooks import Alerting
from strandline.exporters import outbox
from strandline.store.schema.export_tables import export_targets

NOW = EPOCH.timestamp() + 3600


class Hook(ContractServer):
    """A webhook that notes what it is told, and can refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"{self.url}/hook"

    def refuse(self, status: int) -> None:
        self.fault = lambda _: Fault(status)

    def accept(self) -> None:
        self.fault = lambda _: None

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Note the alert."""
        self.told.append(asked.body)
        return 200, {}


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def held(server: Server) -> Server:
    """Credits stopped at barrier 1, transfers goes on."""
    server.post(*two_streams(), ended("credits", 20, "ABORT"))
    return server


def alerting(server: Server, *targets: str, bound: float | None = None) -> Alerting:
    """An Alerting that is driven by hand."""
    return Alerting(
        server.engine, server.follower, targets, lambda why: None, staleness_bound=bound
    )  # fmt: skip


def test_blocked_version_alerts_once_and_again_when_it_recovers(held: Server, hook: Hook) -> None:
    alerts = alerting(held, hook.address)
    for at in (NOW, NOW + 10):
        alerts.look(at)
        alerts.send(at)

    assert [(one["status"], one["rule"], one["about"]) for one in hook.told] == [
        ("firing", "blocked", "default:credits")
    ]
    assert hook.told[0]["text"].startswith(
        "a version of group bank is blocked by credits: job stopped 60 min ago"
    )

    held.post(
        started("credits", 60, ["bank.transfers"], ["bank.credits"], group="bank", run=2),
        committed(
            "credits", 61, 2, {"bank.transfers": "t2"}, {"bank.credits": "c2"}, group="bank", run=2
        ),
    )
    alerts.look(NOW + 20)
    alerts.send(NOW + 20)

    assert [(one["status"], one["rule"]) for one in hook.told] == [
        ("firing", "blocked"),
        ("recovered", "blocked"),
    ]


def test_stale_table_alert_names_the_bottleneck(held: Server, hook: Hook) -> None:
    alerts = alerting(held, hook.address, bound=600)
    alerts.look(NOW)
    alerts.send(NOW)

    stale = [one["text"] for one in hook.told if one["rule"] == "staleness"]
    assert stale == [
        "bank.credits is 60 min behind: barrier 2 is missing; the bottleneck is job credits"
    ]


def test_alerts_name_path_tables_as_spark_does(server: Server) -> None:
    credits, transfers = "/lake/bank/credits", "/lake/bank/transfers"
    events = [
        started("transfers", 0, [], [transfers], group="bank"),
        started("credits", 0, [transfers], [credits], group="bank"),
        *(
            committed("transfers", 10 * at, at, {}, {transfers: f"t{at}"}, group="bank")
            for at in (1, 2, 3, 4)
        ),
        committed("credits", 11, 1, {transfers: "t1"}, {credits: "c1"}, group="bank"),
        committed("credits", 31, 3, {transfers: "t3"}, {credits: "c3"}, group="bank"),
    ]
    for one in events:
        for table in (*one["inputs"], *one["outputs"]):
            spark_name = {
                "name": f"bank.{table['name'].rpartition('/')[2]}",
                "namespace": "lake",
                "type": "TABLE",
            }
            table["namespace"], table["facets"]["symlinks"] = (
                "file",
                facet({"identifiers": [spark_name]}),
            )
    server.post(*events)

    with server.follower.model() as model:
        _, of_tables = model_troubles(model, 600, NOW)
    with server.engine.connect() as connection:
        texts = {one.rule: one.text for one in store_troubles(connection, of_tables, NOW)}

    assert texts["staleness"].startswith("lake.bank.credits is 59 min behind: barrier 4 is missing")
    assert texts["skipped"] == "lake.bank.credits went past barriers 2 without a snapshot"


@pytest.mark.parametrize(
    ("ownership", "told"),
    [
        pytest.param(
            facet({"owners": [{"name": "ann"}, {"name": "ops"}]}), " (owner: ann, ops)", id="owned"
        ),
        pytest.param(facet({"owners": "ann"}), "", id="quarantined"),
        pytest.param("ann", "", id="no object"),
    ],
)
def test_alert_names_the_owners_of_the_bottleneck(
    held: Server, hook: Hook, ownership: Any, told: str
) -> None:
    owned = event("ABORT", "credits", 21)
    owned["job"]["facets"]["ownership"] = ownership
    held.post(owned)
    alerts = alerting(held, hook.address, bound=600)
    alerts.look(NOW)
    alerts.send(NOW)

    stale = [one["text"] for one in hook.told if one["rule"] == "staleness"]
    assert stale == [
        f"bank.credits is 60 min behind: barrier 2 is missing; the bottleneck is job credits{told}"
    ]


def test_dead_target_loses_no_alert_and_does_not_delay_the_other(held: Server, hook: Hook) -> None:
    dead = Hook()
    dead.refuse(500)
    alerts = alerting(held, dead.address, hook.address)
    alerts.look(NOW)

    assert alerts.send(NOW) == 1
    assert len(hook.told) == 1
    assert alerts.send(NOW + 1) == 0

    dead.accept()
    assert alerts.send(NOW + 10) == 1
    assert len(dead.told) == len(hook.told) == 1
    dead.close()


def test_slack_gets_readable_text(held: Server, hook: Hook) -> None:
    alerts = alerting(held, f"slack={hook.address}")
    alerts.look(NOW)
    alerts.send(NOW)

    assert list(hook.told[0]) == ["text"]
    assert hook.told[0]["text"].startswith(
        ":red_circle: blocked: a version of group bank is blocked by credits"
    )


def test_two_servers_send_each_alert_once(held: Server, hook: Hook) -> None:
    one, other = alerting(held, hook.address), alerting(held, hook.address)
    for alerts in (one, other, one, other):
        alerts.look(NOW)
        alerts.send(NOW)

    assert len(hook.told) == 1


def rules(hook: Hook) -> list[tuple[str, str, str]]:
    return [(one["status"], one["rule"], one["text"]) for one in hook.told]


def test_failed_job_alerts_once_however_often_it_fails_and_recovers_when_it_is_well(
    server: Server, hook: Hook
) -> None:
    alerts = alerting(server, hook.address)
    recent = time.time() - EPOCH.timestamp()
    server.post(
        started("etl", recent - 90, ["db.a"], ["db.b"], group=None),
        ended("etl", recent - 80, "FAIL"),
    )
    alerts.look(time.time())
    server.post(started("etl", recent - 70, ["db.a"], ["db.b"], group=None, run=2))
    alerts.look(time.time())  # a retry that runs is not well yet
    server.post(ended("etl", recent - 60, "FAIL", run=2))
    alerts.look(time.time())
    server.post(
        started("etl", recent - 50, ["db.a"], ["db.b"], group=None, run=3),
        ended("etl", recent - 40, "COMPLETE", run=3),
    )
    alerts.look(time.time())
    alerts.send(time.time())

    assert [(one["status"], one["count"], one["text"]) for one in hook.told] == [
        ("firing", 1, f"job etl failed (run {run_id('etl')})"),
        ("recovered", 2, f"job etl failed 2 times (run {run_id('etl', 2)})"),
    ]


def test_alert_of_a_failure_stays_on_when_its_run_is_old(server: Server, hook: Hook) -> None:
    alerts = alerting(server, hook.address)
    recent = time.time() - EPOCH.timestamp()
    server.post(
        started("etl", recent - 90, [], ["db.b"], group=None), ended("etl", recent - 80, "FAIL")
    )
    alerts.look(time.time())

    assert alerts.look(time.time() + 3 * 86_400) == 0


def test_alert_has_reason_owner_page_and_dependents(server: Server, hook: Hook) -> None:
    alerts = Alerting(
        server.engine, server.follower, [hook.address, f"slack={hook.address}"],
        lambda why: None, public_url="https://lineage.example",
    )  # fmt: skip
    recent = time.time() - EPOCH.timestamp()
    failed = ended("etl", recent - 10, "FAIL", run=2)
    failed["job"]["facets"]["ownership"] = facet({"owners": [{"name": "ann"}]})
    failed["run"]["facets"]["errorMessage"] = facet(
        {"message": "disk is full\n\tat x.y", "programmingLanguage": "JAVA"}
    )
    server.post(
        started("etl", recent - 40, ["db.a"], ["db.b"], group=None),
        ended("etl", recent - 30),
        started("report", recent - 30, ["db.b"], ["db.c"], group=None),
        started("etl", recent - 20, ["db.a"], ["db.b"], group=None, run=2),
        failed,
    )
    alerts.look(time.time())
    alerts.send(time.time())
    message, slack = hook.told

    assert (message["reason"], message["owners"], message["late"]) == ("disk is full", ["ann"], [])
    assert message["dependents"] == ["db.b", "db.c"]
    assert message["link"] == "https://lineage.example/job?namespace=default&name=etl"
    assert slack["text"].splitlines() == [
        f":red_circle: failed: job etl failed (run {run_id('etl', 2)})",
        "disk is full",
        "owner: ann",
        "depends on it: db.b, db.c",
        "https://lineage.example/job?namespace=default&name=etl",
    ]


def test_alert_names_the_tables_that_are_late(held: Server, hook: Hook) -> None:
    alerts = alerting(held, hook.address, bound=600)
    alerts.look(NOW)
    alerts.send(NOW)
    (blocked,) = [one for one in hook.told if one["rule"] == "blocked"]

    assert blocked["late"] == ["bank.credits"]


def test_run_without_a_heartbeat_is_lost_after_the_silent_time(server: Server, hook: Hook) -> None:
    alerts = alerting(server, hook.address)
    recent = time.time() - EPOCH.timestamp()
    server.post(event("START", "etl", recent))
    alerts.look(time.time())
    alerts.look(time.time() + 86_400 + 180)
    alerts.send(time.time() + 86_400 + 180)

    ((status, rule, text),) = rules(hook)
    assert (status, rule) == ("firing", "lost")
    assert text.startswith("job etl is lost: silent beyond its heartbeat timeout for 3 min")


def test_silent_job_alerts(server: Server, hook: Hook) -> None:
    alerts = alerting(server, hook.address)
    recent = time.time() - EPOCH.timestamp()
    server.post(
        event(
            "START",
            "etl",
            recent,
            run_facets={"strandline_heartbeat": facet({"timeoutSeconds": 60})},
        )
    )
    alerts.look(time.time())
    alerts.look(time.time() + 180)
    alerts.send(time.time() + 180)

    ((status, rule, text),) = rules(hook)
    assert (status, rule) == ("firing", "lost")
    assert hook.told[0]["about"] == "default:etl"
    assert text.startswith("job etl is lost: silent beyond its heartbeat timeout for 2 min")


def test_job_that_is_lost_again_and_again_alerts_once_and_recovers_when_it_is_well(
    server: Server, hook: Hook
) -> None:
    alerts = alerting(server, hook.address)
    recent = time.time() - EPOCH.timestamp()
    lease = {"strandline_heartbeat": facet({"timeoutSeconds": 60})}
    for run in (1, 2, 3):
        server.post(event("START", "etl", recent + run, run=run, run_facets=lease))
        alerts.look(time.time() + 180)
    server.post(event("START", "etl", recent + 4, run=4))
    alerts.look(time.time() + 180)  # a retry that runs is not well yet
    server.post(event("COMPLETE", "etl", recent + 5, run=4))
    alerts.look(time.time() + 180)
    alerts.look(time.time() + 3600)
    alerts.send(time.time() + 3600)

    assert [(one["status"], one["rule"], one["count"]) for one in hook.told] == [
        ("firing", "lost", 1),
        ("recovered", "lost", 3),
    ]
    assert hook.told[1]["text"].startswith("job etl is lost 3 times: silent beyond its heartbeat")


def test_recovered_target_gets_alerts_in_order(held: Server, hook: Hook) -> None:
    alerts = alerting(held, hook.address)
    hook.refuse(500)
    alerts.look(NOW)
    alerts.send(NOW)
    held.send("DELETE", "/unregister/credits")
    alerts.look(NOW + 1)
    hook.accept()

    assert alerts.send(NOW + 1) == 0
    assert alerts.send(NOW + 10) == 2
    assert [one["status"] for one in hook.told] == ["firing", "recovered"]


def test_rejected_alert_is_sent_once_when_replayed(held: Server, hook: Hook) -> None:
    alerts = alerting(held, hook.address)
    hook.refuse(400)
    alerts.look(NOW)
    alerts.send(NOW)
    hook.accept()
    two_days_later = NOW + 2 * 86_400
    replayed, sent = [], []
    for turn in range(2):
        with held.engine.begin() as connection:
            (name,) = connection.scalars(select(export_targets.c.name))
            replayed.append(outbox.replay_parked(connection, name, two_days_later))
            outbox.put_in_order(connection)
            outbox.clean(connection, two_days_later + 1)
        sent.append(alerts.send(two_days_later + 1 + turn))

    assert (replayed, sent) == ([1, 0], [1, 0])
    assert [one["rule"] for one in hook.told] == ["blocked"]


def test_silent_target_does_not_delay_the_others(held: Server, hook: Hook) -> None:
    silent = Hook()
    answers = threading.Event()
    silent.fault = lambda _: Fault(200, hang=answers)
    alerts = Alerting(
        held.engine, held.follower, [silent.address, hook.address], lambda why: None, interval=0.05
    )
    alerts.start()
    wait_until(lambda: hook.told)
    heard = len(hook.told)
    answers.set()
    silent.close()
    alerts.stop()

    assert heard == 1
