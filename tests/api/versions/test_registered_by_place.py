"""Jobs that registered tables by catalog, database and table before any event named them."""

from fixtures.versions_server.events import committed, started
from fixtures.versions_server.server import Server

PLACE = "iceberg%3A%2F%2Flake/db"
CREDITS, DEBITS, BALANCE = "db.credits", "db.debits", "db.balance"
JOBS = {"credits": ["transfers"], "debits": ["transfers"], "balance": ["credits", "debits"]}


def test_tables_registered_by_place_complete_the_first_barrier(server: Server) -> None:
    for number, (job, reads) in enumerate(JOBS.items()):
        for table in reads:
            server.send("POST", f"/register/source/{job}/{PLACE}/{table}?group=bank")
        server.send("POST", f"/register/sink/{job}/{PLACE}/{job}?group=bank")
        server.post(started(job, number, [], [], domain=None))

    for barrier in (1, 2):
        for job in ("credits", "debits"):
            read, made = {"db.transfers": f"t{barrier}"}, {f"db.{job}": f"{job}{barrier}"}
            server.post(committed(job, 10 * barrier, barrier, read, made, domain="bank"))
    before = server.versions(CREDITS, DEBITS, BALANCE, status=404)
    server.post(
        committed(
            "balance",
            30,
            1,
            {CREDITS: "credits1", DEBITS: "debits1"},
            {BALANCE: "balance1"},
            domain="bank",
        )
    )

    assert "db.balance" in before["detail"]
    assert server.snapshots(CREDITS, DEBITS, BALANCE) == {
        CREDITS: "credits1",
        DEBITS: "debits1",
        BALANCE: "balance1",
    }
