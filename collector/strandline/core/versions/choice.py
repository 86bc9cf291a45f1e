"""A choice among the snapshots that carry a barrier: one of each table, none in two states.

Several runs may have replaced a table at one barrier, and what was made from it shows one of them.
"""

from collections.abc import Iterable

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.model import Model


def newest_choice(
    model: Model, tables: Iterable[Table], barrier: int
) -> dict[Table, Completion] | None:
    """Return the newest choice for `tables` and all that their snapshots were made from.

    Whoever offends is moved back: an output that was made from something newer than its input's
    choice, an input that is newer than what its output was made from. None where no choice fits.
    """
    options: dict[Table, list[Completion]] = {}
    waiting = list(tables)
    while waiting:
        table = waiting.pop()
        if table in options:
            continue
        options[table] = model.done[table].candidates(barrier)
        for candidate in options[table]:
            waiting.extend(one.table for one in _inputs(model, table, candidate))
    if all(len(candidates) == 1 for candidates in options.values()):
        return {table: candidates[0] for table, candidates in options.items()}
    waiting = list(options)
    while waiting:
        table = waiting.pop()
        moved = _moved_back(model, options, table)
        if not all(options[one] for one in moved):
            return None
        if moved:
            waiting = list(options)
    return {table: candidates[-1] for table, candidates in options.items()}


def _moved_back(model: Model, options: dict[Table, list[Completion]], table: Table) -> list[Table]:
    """Drop the newest candidate of `table` or of one of its inputs, if they do not fit."""
    for used in _inputs(model, table, options[table][-1]):
        shown = [one.snapshot for one in options[used.table]]
        if shown[-1] in (used.snapshot, used.shows):
            continue
        offender = used.table if {used.snapshot, used.shows} & set(shown) else table
        options[offender].pop()
        return [offender]
    return []


def _inputs(model: Model, table: Table, candidate: Completion) -> list[Used]:
    """Return the inputs of a snapshot that carry its barrier too."""
    group = model.domain_of.get(table)
    return [
        one
        for one in candidate.used
        if one.exact
        and not one.lookup
        and one.table != table
        and model.domain_of.get(one.table) == group
        and candidate.barrier in model.done[one.table]
    ]
