"""Delivery is ordered and exactly once under faults; waiting changes are bounded."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from fixtures.contract_servers.marquez import MarquezContract
from fixtures.contract_servers.server import Asked, ContractServer, Fault, free_port
from fixtures.waiting import wait_until
from strandline.exporters import outbox
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings
from transports.exporters.conftest import Export
from worlds.builders import NOON, dataset, event, rows, run_id, store

NOW = NOON.timestamp() + 100
LATER = 1000.0


def done(run: int, job: str = "etl", **more: Any) -> dict[str, Any]:
    return event(
        "COMPLETE", run, job, run, inputs=[dataset("db.a")], outputs=[dataset(f"db.{job}")], **more
    )


def problem(engine: Engine, name: str = "marquez") -> str:
    """Return the reason why a target takes nothing."""
    found = rows(engine, f"SELECT problem FROM export_targets WHERE name = '{name}'")
    return str(found[0][0])


def test_no_target_means_no_outbox_rows(engine: Engine) -> None:
    store(engine, [done(1)])

    assert rows(engine, "SELECT * FROM export_news") == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(status=500), "answers 500"),
        (Fault(status=429, headers={"Retry-After": "90"}), "answers 429"),
        (Fault(status=401), "answers 401"),
        (
            Fault(status=302, headers={"Location": "http://169.254.169.254/"}),
            "redirects are not followed",
        ),
        (Fault(half=True), "IncompleteRead"),
        (Fault(), "RemoteDisconnected"),
        (Fault(status=200, body=b"x" * (2 << 20)), "longer than"),
    ],
)
def test_everything_is_delivered_once_after_a_fault(
    engine: Engine, exporting: Export, marquez: MarquezContract, fault: Fault, told: str
) -> None:
    exports = exporting(marquez_url=marquez.url)
    store(engine, [done(1), done(2)], received_at=NOON)
    marquez.fault = lambda _: fault
    exports.deliver(NOW)
    said = problem(engine)
    asked = len(marquez.asked)
    exports.deliver(NOW + 0.5)
    marquez.fault = lambda _: None
    exports.deliver(NOW + LATER)

    assert told in said
    assert (len(marquez.asked) - asked, asked <= 2) == (4, True)
    assert marquez.states == {run_id(1): ["START", "COMPLETE"], run_id(2): ["START", "COMPLETE"]}
    assert problem(engine) == ""


def test_unreachable_address_is_retried_less_and_less_often(
    engine: Engine, exporting: Export
) -> None:
    exports = exporting(marquez_url=f"http://127.0.0.1:{free_port()}")
    store(engine, [done(1)], received_at=NOON)
    for second in range(0, 3600, 5):
        exports.deliver(NOW + second)

    (failures,) = rows(engine, "SELECT failures FROM export_targets")[0]
    assert 8 <= failures <= 15
    assert "ConnectionRefused" in problem(engine)


def test_rejected_run_is_parked_with_the_reason_and_blocks_nothing(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    marquez.fault = lambda asked: Fault(422, body=b"too long") if is_of(asked, "bad") else None
    store(engine, [done(1), done(2, "bad"), done(3)], received_at=NOON)
    exports.deliver(NOW)
    parked = rows(engine, "SELECT about, reason FROM export_parked")
    marquez.fault = lambda _: None
    with engine.begin() as connection:
        assert outbox.replay_parked(connection, "marquez", NOW) == 1
    exports.deliver(NOW + 1)

    assert len(parked) == 1
    assert "job tests bad" in parked[0][0]
    assert "answers 422: too long" in parked[0][1]
    assert set(marquez.states) == {run_id(1), run_id(2), run_id(3)}
    assert rows(engine, "SELECT * FROM export_parked") == []


def is_of(asked: Asked, job: str) -> bool:
    """Return true if a request is about a job."""
    return bool(asked.body["job"]["name"] == job)


def test_accepted_newer_state_unparks_a_run(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    marquez.fault = lambda _: Fault(400)
    store(
        engine,
        [event("START", 1, inputs=[dataset("db.a")], outputs=[dataset("db.b")])],
        received_at=NOON,
    )
    exports.deliver(NOW)
    marquez.fault = lambda _: None
    store(engine, [event("COMPLETE", 1, seconds=5)], received_at=NOON)
    exports.deliver(NOW + 1)

    assert marquez.page() == {"etl": "db.a > db.b"}
    assert rows(engine, "SELECT * FROM export_parked") == []


def test_run_that_breaks_a_target_does_not_block_the_others(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    marquez.fault = lambda asked: Fault(500) if is_of(asked, "bad") else None
    store(engine, [done(1, "bad"), done(2), done(3)], received_at=NOON)
    for turn in range(8):
        exports.deliver(NOW + 700 * turn)

    assert set(marquez.states) == {run_id(2), run_id(3)}
    assert [
        about.split(" of ")[1] for (about,) in rows(engine, "SELECT about FROM export_parked")
    ] == ["job tests bad (COMPLETE)"]


def test_dead_target_does_not_delay_the_others(engine: Engine, marquez: MarquezContract) -> None:
    silent = ContractServer()
    hang = threading.Event()
    silent.fault = lambda _: Fault(200, hang=hang)
    settings = Settings(marquez_url=marquez.url, openlineage_url=silent.url)
    exports = Exporting(engine, targets_of(settings), lambda why: None)
    with exports:
        store(engine, [done(1)])
        wait_until(lambda: marquez.states)
        heard = set(marquez.states)
        hang.set()
    silent.close()

    assert heard == {run_id(1)}


def test_two_processes_send_each_change_once(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    one, other = exporting(marquez_url=marquez.url), exporting(marquez_url=marquez.url)
    for number in range(1, 6):
        store(engine, [done(number)], received_at=NOON)
        threads = [
            threading.Thread(target=exports.deliver, args=(NOW + number,))
            for exports in (one, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    one.deliver(NOW + LATER)

    assert {
        run: states for run, states in marquez.states.items() if states != ["START", "COMPLETE"]
    } == {}
    assert len(marquez.states) == 5


def test_another_process_continues_when_one_dies(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    one, other = exporting(marquez_url=marquez.url), exporting(marquez_url=marquez.url)
    store(engine, [done(1)], received_at=NOON)
    one.deliver(NOW)
    store(engine, [done(2)], received_at=NOON)
    soon = other.deliver(NOW + 1)
    later = other.deliver(NOW + 61)

    assert (soon, later) == (0, 1)


@pytest.mark.parametrize(
    ("failures", "answer", "requests"),
    [
        pytest.param(0, None, 20, id="taken"),
        pytest.param(0, Fault(422), 10, id="refused"),
        pytest.param(5, Fault(500), 10, id="doubtful"),
    ],
)
def test_delivery_lock_lasts_as_long_as_a_delivery(
    engine: Engine,
    exporting: Export,
    marquez: MarquezContract,
    failures: int,
    answer: Fault | None,
    requests: int,
) -> None:
    one, other = exporting(marquez_url=marquez.url), exporting(marquez_url=marquez.url)
    store(engine, [done(number) for number in range(1, 11)], received_at=NOON)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE export_targets SET failures = {failures}"))
    clock = [NOW]

    def slowly(_: Asked) -> Fault | None:
        clock[0] += 20
        other.deliver(clock[0])
        return answer

    marquez.fault = slowly
    one.deliveries[0].deliver(lambda: clock[0])

    assert len(marquez.asked) == requests


def test_retry_delay_starts_when_the_target_fails(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    store(engine, [done(number) for number in range(1, 11)], received_at=NOON)
    clock = [NOW]

    def slowly(_: Asked) -> Fault | None:
        clock[0] += 20
        return Fault(503) if len(marquez.asked) > 10 else None

    marquez.fault = slowly
    exports.deliveries[0].deliver(lambda: clock[0])
    failed_at, asked = clock[0], len(marquez.asked)
    exports.deliver(failed_at + 1)

    ((next_at, failures),) = rows(engine, "SELECT next_at, failures FROM export_targets")
    assert failed_at > NOW + 200
    assert failed_at + 2 <= next_at / outbox.MICRO <= failed_at + 3
    assert (len(marquez.asked), failures) == (asked, 1)


def test_waiting_changes_are_bounded_to_each_jobs_newest_run(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url, max_waiting=50)
    marquez.fault = lambda _: Fault(503)
    store(engine, [done(number, f"job{number % 10}") for number in range(1, 201)], received_at=NOON)
    exports.tidy(NOW)
    ((waiting,),) = rows(engine, "SELECT count(*) FROM export_changes")
    marquez.fault = lambda _: None
    exports.deliver(NOW)

    assert waiting == 10
    assert set(marquez.states) == {run_id(number) for number in range(191, 201)}


def test_changes_delivered_to_all_targets_are_dropped(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    store(engine, [done(1)], received_at=NOON)
    exports.deliver(NOW)
    exports.tidy(NOW)

    assert rows(engine, "SELECT * FROM export_changes") == []
    assert rows(engine, "SELECT * FROM export_news") == []


def test_target_no_longer_configured_is_removed(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exporting(marquez_url=marquez.url, now=NOW)
    exporting(openlineage_url=marquez.url, now=NOW + 8 * 86_400)

    assert rows(engine, "SELECT name FROM export_targets") == [("openlineage",)]


def test_token_from_a_file_is_sent_but_never_shown(
    engine: Engine, exporting: Export, marquez: MarquezContract, tmp_path: Any
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    exports = exporting(marquez_url=marquez.url, marquez_token_file=str(file))
    marquez.fault = lambda _: Fault(403)
    store(engine, [done(1)], received_at=NOON)
    exports.deliver(NOW)

    assert marquez.asked[0].headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in problem(engine)


@pytest.mark.parametrize("networks", ["10.0.0.0/8", "::1/128"])
def test_address_outside_the_allowed_networks_is_not_contacted(
    engine: Engine, exporting: Export, marquez: MarquezContract, networks: str
) -> None:
    from strandline.setting_parsers import networks as parsed

    exports = exporting(marquez_url=marquez.url, export_networks=parsed(networks))
    store(engine, [done(1)], received_at=NOON)
    exports.deliver(NOW)

    assert (marquez.asked, "STRANDLINE_EXPORT_NETWORKS" in problem(engine)) == ([], True)


def test_link_local_address_is_never_contacted(engine: Engine, exporting: Export) -> None:
    exports = exporting(marquez_url="http://169.254.169.254")
    store(engine, [done(1)], received_at=NOON)
    exports.deliver(NOW)

    assert "never contacted" in problem(engine)
