"""Completing barriers: noting snap(T, b), holding back what other facts contradict, and taking back what no longer holds.

Whatever changes here is noted in `model.changed`, so that derived.py can follow it downstream.
"""

from strandline.core.versions.admission import recount
from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.model import Model
from strandline.core.versions.prune import forget


def complete(model: Model, domain: str, table: Table, completion: Completion) -> None:
    """Note a completed barrier of `table`, and who may be admitted by it.

    One of long ago stays forgotten: come back alone it would be the weak answer of tables with no
    newer one in common.
    """
    if model.domain_of.get(table) != domain:
        return
    done = model.done[table]
    if not done.takes(completion) or completion.barrier < done.forgotten:
        return
    model.domain(domain).born(completion.barrier, completion.committed)
    if not completion.derived and contradicted(model, table, completion):
        done.withheld.setdefault(completion.barrier, []).append(completion)
        return
    before = done.of.get(completion.barrier)
    added = done.add(completion)
    after = done.of[completion.barrier]
    if before is None or before.snapshot != after.snapshot:
        model.changed.append((table, completion.barrier))
    if added:
        _count(model, domain, table, completion.barrier)


def _count(model: Model, domain: str, table: Table, barrier: int) -> None:
    forget(model, model.domain(domain))
    component = model.components.get(table)
    if component is None:
        return
    moved = component.count(barrier)
    if component.joining and (moved or table not in model.counting):
        model.may_join |= component.joining


def contradicted(model: Model, table: Table, completion: Completion) -> bool:
    """Whether an input shows another snapshot at the barrier than the one that was read."""
    return any(_differs(model, table, completion, used) for used in completion.used)


def _differs(model: Model, table: Table, completion: Completion, used: Used) -> bool:
    same_domain = model.domain_of.get(used.table) == model.domain_of.get(table)
    if not used.exact or used.table == table or not same_domain or not model.is_managed(used.table):
        return False
    done = model.done[used.table]
    if completion.barrier not in done:
        return False
    if completion.derived:
        return done.of[completion.barrier].snapshot != used.shows
    return not (
        done.carries(used.shows, completion.barrier)
        or done.carries(used.snapshot, completion.barrier)
    )


def take_back(model: Model, table: Table, barrier: int) -> None:
    """Take a completed barrier back.

    One that was stated is held back until its inputs say the same again.
    """
    done = model.done[table]
    if not done.of[barrier].derived:
        done.withheld.setdefault(barrier, []).append(done.of[barrier])
    done.retract(barrier)
    model.changed.append((table, barrier))
    component = model.components.get(table)
    if component is not None and component.uncount(barrier):
        recount(model, {table})
