"""Completing barriers: noting who carries what, and taking back what other facts contradict.

Whatever changes here is noted in `model.changed`, so that derive.py can follow it downstream.
"""

from math import inf

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.model import Model
from strandline.core.versions.prune import forget


def complete(model: Model, group: str, table: Table, completion: Completion) -> None:
    """Note a snapshot that carries a barrier.

    One of long ago stays forgotten: come back alone it would be the weak answer of tables with no
    newer one in common.
    """
    if completion.committed < model.reused.get(table, -inf):
        let_go(model, group, table, completion.barrier)
        return
    if model.group_of.get(table) != group:
        return
    done = model.done[table]
    if completion.barrier <= model.of_former.get((group, table), -inf):
        return
    if not done.takes(completion) or completion.barrier < done.forgotten:
        return
    model.group(group).born(completion.barrier, completion.committed)
    if not completion.derived and contradicted(model, table, completion):
        done.withheld.setdefault(completion.barrier, []).append(completion)
        return
    if done.add(completion):
        model.changed.append((table, completion.barrier))
        model.unsettled |= model.writers.get(table, set())
        forget(model, model.group(group))


def let_go(model: Model, group: str, table: Table, barrier: int) -> None:
    """Forget the barriers of a table up to one that another table of its name had in the group."""
    model.of_former[group, table] = max(barrier, model.of_former.get((group, table), barrier))
    if model.group_of.get(table) == group:
        dropped = model.done[table].drop_up_to(barrier)
        model.changed.extend([(table, barrier) for barrier in dropped])


def contradicted(model: Model, table: Table, completion: Completion) -> bool:
    """Return whether a stated barrier is not so.

    The table holds rows that others left, or an input has the barrier at another snapshot than the
    one that was read.
    """
    made_by = model.made.get((table, completion.snapshot))
    if made_by is not None:
        state = model.steps[made_by[0]].of[made_by[1]].states.get(table)
        if state is not None and state.broken:
            return True
    return any(_differs(model, table, completion, used) for used in completion.used)


def _differs(model: Model, table: Table, completion: Completion, used: Used) -> bool:
    if not used.exact or used.lookup or used.table == table:
        return False
    if model.group_of.get(used.table) != model.group_of.get(table):
        return False
    done = model.done[used.table]
    if completion.barrier not in done:
        return False
    return not any(
        done.carries(snapshot, completion.barrier) for snapshot in (used.shows, used.snapshot)
    )


def take_back(model: Model, table: Table, completion: Completion) -> None:
    """Take a candidate back; one that was stated waits until its inputs say the same again."""
    done = model.done[table]
    if not completion.derived:
        done.withheld.setdefault(completion.barrier, []).append(completion)
    done.retract(completion)
    model.changed.append((table, completion.barrier))
