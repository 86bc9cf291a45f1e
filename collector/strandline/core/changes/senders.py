"""Whose the datasets of an event are.

Of one that is in no namespace of the sender's key the event may say that it is read.

The collector notes these namespaces in the event (`strandline_sender`) where it names a dataset
beyond them, so whoever reads the stored event again comes to the same rows.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import msgspec

from strandline.core.access.granted import Access
from strandline.core.changes.bundles import NO_GROUP, AliasSet, Link
from strandline.core.changes.extraction import SOURCE
from strandline.core.changes.rows import ELSEWHERE
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.facets import content_hash

SENDER = "strandline_sender"

Owns: TypeAlias = Callable[[str], bool]  # whether what is in a namespace is the sender's


def everything(_: str) -> bool:
    """The sender owns all namespaces, or nobody was asked for a key."""
    return True


class SenderFacet(msgspec.Struct, frozen=True):
    """Job facet `strandline_sender`: the namespaces of the key that sent the event."""

    namespaces: tuple[str, ...]


_SENDER = msgspec.json.Decoder(SenderFacet)


def owner_of(facet: f.Facet | None) -> Owns:
    """What the sender owns; without the facet, as the collector writes it, everything."""
    try:
        return (
            everything
            if facet is None
            else Access("", frozenset(), _SENDER.decode(facet.body).namespaces).allows
        )
    except msgspec.MsgspecError:
        return everything


def owned(link: Link, owns: Owns) -> Link:
    """The link without what is not the sender's to say.

    Of a dataset elsewhere its name stays, and that the job reads it.
    """
    if owns is everything:
        return link
    group = link.group
    if owns(link.dataset.namespace):
        return replace(link, group=group._replace(aliases=owned_aliases(group.aliases, owns)))
    stated = NO_GROUP._replace(facets=group.facets)  # edges into and from what is the sender's
    return replace(
        link, group=stated, creates=ELSEWHERE if link.direction == SOURCE else 0, elsewhere=True
    )


def owned_aliases(aliases: AliasSet | None, owns: Owns) -> AliasSet | None:
    """The other names of a dataset without those that are not the sender's to give."""
    if aliases is None or owns is everything:
        return aliases
    mentions = tuple([one for one in aliases.mentions if owns(one.namespace)])
    if len(mentions) == len(aliases.mentions):
        return aliases
    ids = {one.id for one in mentions}
    kept = tuple([one for one in aliases.aliases if one.alias_id in ids])
    hash_ = content_hash(aliases.hash + b"".join(one.to_bytes(8, "big") for one in sorted(ids)))
    return AliasSet(aliases.dataset_id, hash_, kept, mentions) if kept else None
