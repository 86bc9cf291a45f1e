"""What has a text in one of its words, in order, read no further than somebody asks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from heapq import heapify, heappop, heapreplace, merge
from typing import Any

from strandline.store.search.pages import DATASET_NAME, Listed, Order, WordPage

Hit = tuple[Order, int]


def found_by_name(
    pages: Iterable[Listed], word: str, namespaces: Mapping[int, str]
) -> Iterator[Hit]:
    """(length, kind, namespace, folded name) and id of what has the folded word in a name, the least key first."""
    sources: list[tuple[Order, Callable[[], Iterator[Hit]]]] = []
    for one in pages:
        if one.namespace_id in namespaces:
            where = ("dataset" if one.kind == DATASET_NAME else "job", namespaces[one.namespace_id])
            sources.append((_key(one.page, 0, where), partial(_names, one.page, word, where)))
    return _in_order(sources)


def found_by_text(pages: Iterable[Listed], word: str) -> Iterator[Hit]:
    """(id,) and id of what has the folded word in its texts, the least id first."""
    return _in_order([((one.page.ids[0],), partial(_owners, one.page, word)) for one in pages])


def _key(page: WordPage, owner: int, where: tuple[str, str]) -> Order:
    name = page.name(owner)
    return len(name), *where, name


def _names(page: WordPage, word: str, where: tuple[str, str]) -> Iterator[Hit]:
    last = -1
    for place in page.hits(word):
        for owner in page.owners(place):
            if owner != last:
                last = owner
                yield _key(page, owner, where), page.ids[owner]


def _owners(page: WordPage, word: str) -> Iterator[Hit]:
    last = -1
    for owner in merge(*[page.owners(place) for place in page.hits(word)]):
        if owner != last:
            last = owner
            yield (page.ids[owner],), page.ids[owner]


def _in_order(sources: Iterable[tuple[Order, Callable[[], Iterator[Hit]]]]) -> Iterator[Hit]:
    """The hits of all sources in one order.

    A source is opened when the least key that it may have has its turn.
    """
    heap: list[tuple[Order, int, Hit | None, Any]] = [
        (least, number, None, opened) for number, (least, opened) in enumerate(sources)
    ]
    heapify(heap)
    while heap:
        _, number, hit, rest = heap[0]
        if hit is None:
            rest = rest()
        else:
            yield hit
        following = next(rest, None)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], number, following, rest))
