"""Forgetting barriers of long ago: a server lives for years, and every commit of every table is a barrier.

A barrier is needed while a version, a place or a start-up is at it or before it; of those before all of these the last
`keeps` stay, and of every table its own last ones. What goes follows from the facts alone, so all servers forget the same.
"""

from bisect import bisect_left

from strandline.core.barriers import Table
from strandline.core.model import Domain, Model
from strandline.core.places import Place


def forget(model: Model, domain: Domain) -> None:
    """Forget what nobody needs of a domain's barriers, once there are `keeps` more of them than when last looked."""
    if len(domain.order) < domain.looked_at + 2 * model.keeps:
        return
    tables = [table for table, name in model.domain_of.items() if name == domain.name and table in model.done]
    needed = _needed(model, domain, tables)
    place = bisect_left(domain.order, needed) - model.keeps if needed is not None else 0
    if place > 0:
        before = domain.order[place]
        for table in tables:
            model.done[table].forget(before, model.keeps)
        domain.forget(before)
    domain.looked_at = len(domain.order) - model.keeps


def _needed(model: Model, domain: Domain, tables: list[Table]) -> int | None:
    """The oldest barrier at which somebody is; None when somebody has not begun and may need them all."""
    versions = [model.components[table].version for table in tables if table in model.components]
    positions = [_position(place) for place in model.places.values() if place.domain == domain.name]
    known = [one for one in (*versions, *positions) if one is not None]
    return min(known) if known and len(known) == len(versions) + len(positions) else None


def _position(place: Place) -> int | None:
    return place.position if place.position is not None else place.start_barrier
