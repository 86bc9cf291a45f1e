"""Expiry carried out again and again while queries that end by themselves start anew and readers hold leased answers.

Each round commits barriers at the base table, lets all jobs start, work and end, takes a leased answer, expires every table by
`strandline expire --execute`, and then reads again what all readers hold. Nothing may break. STRANDLINE_EXPIRY_SECONDS and _EXPIRY_INTERVAL say how long and how often.
"""

import os
import time

from bench._histories import Driven, driven
from bench.report import record

SECONDS = float(os.environ.get("STRANDLINE_EXPIRY_SECONDS", "1800"))
INTERVAL = float(os.environ.get("STRANDLINE_EXPIRY_INTERVAL", "60"))
TABLES = ("transfers", "credits", "balance", "copy")


def run(short: bool) -> None:
    """Expire at the interval for as long.

    Record rounds, what went, what was kept, and what broke.
    """
    begun, barrier, rounds, reads, went = time.monotonic(), 0, 0, 0, 0
    broken: list[str] = []
    with driven() as lake:
        while rounds < 3 if short else time.monotonic() < begun + SECONDS:
            at = time.monotonic()
            while barrier < 2 * (rounds + 1) or (not short and time.monotonic() < at + INTERVAL):
                barrier += 1
                broken += [
                    one for word in ("commit", "copy") if (one := fault(lake, word, barrier))
                ]
                broken += [one for one in [fault(lake, "work", 1)] if one]
            broken += [one for one in [fault(lake, "lease")] if one]
            went += sum(expired(lake, table, broken) for table in TABLES)
            answer = lake.ask("read")
            reads += answer.get("read", 0)
            if answer.get("read") != answer.get("same"):
                broken.append(
                    f"round {rounds}: of {answer.get('read')} readers {answer.get('same')} read as before: {answer}"
                )
            rounds += 1
        left = lake.tell("snapshots")
    minutes = (time.monotonic() - begun) / 60
    target, enough = ("", None) if short else (f">= {SECONDS / 60:.0f}", minutes >= SECONDS / 60)
    record("expiry.minutes", minutes, "min", target, enough)
    record(
        "expiry.rounds",
        rounds,
        "expiries",
        note=f"{barrier} barriers, as many restarts of each query",
    )
    record("expiry.expired", went, "snapshots", note=f"left: {left}")
    record("expiry.leased_reads", reads, "reads", note="of answers held over expiries")
    record(
        "expiry.broken", len(broken), "restarts or reads", "0", not broken, "; ".join(broken[:2])
    )
    if broken or not went:
        raise AssertionError(f"{broken[:3]}, {went} expired")


def fault(lake: Driven, word: str, number: int = 0) -> str:
    """What went wrong with a line, if anything did."""
    error = lake.ask(word, number).get("error")
    return f"{word} {number}: {error}" if error else ""


def expired(lake: Driven, table: str, broken: list[str]) -> int:
    """Expire a table; how many snapshots went."""
    before = lake.tell("snapshots")[table]
    done = lake.run(["expire", f"lake.h.{table}", "--execute", "--keep-barriers", "2"])
    if done.returncode:
        broken.append(f"expire {table}: {done.stderr}")
    return int(before - lake.tell("snapshots")[table])
