"""The tree of places that datasets stand in, folded into a few boxes.

A dataset's folders are its catalog and databases; or its namespace (a bucket, a broker) and the
folders of its path.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

from strandline.core.openlineage.names import names_tables, parts_of
from strandline.errors import NotFoundError, QuestionError

MOST_BOXES = 40
CATALOG, NAMESPACE = "catalog:", "namespace:"

Path = tuple[str, ...]


class PlacedDataset(NamedTuple):
    """A dataset with the folders that it stands in, the outermost first."""

    id: int
    folders: Path
    name: str


class Opening(NamedTuple):
    """A box to open: its path, and how many of its boxes to pass over."""

    path: Path
    first: int = 0


@dataclass(slots=True)
class Box:
    """A part of the map; `path` is its place, and `frame` the open box around it.

    `boxes` is the number of boxes that a rest stands for. An open box is a frame.
    """

    id: str
    type: str
    name: str
    path: Path
    frame: Path
    datasets: Sequence[PlacedDataset]
    boxes: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class PlaceMap:
    """The boxes of a map, and the frames that are open around them."""

    boxes: Sequence[Box]
    frames: Sequence[Box]


@dataclass(slots=True)
class _Frame:
    """An open box while its content is collected."""

    path: Path
    groups: dict[str | int, list[PlacedDataset]] = field(default_factory=lambda: defaultdict(list))


def folders_of_table(namespace: str, catalog: str, database: str) -> Path:
    """Return the folders of a table: its catalog, or its namespace, and its databases.

    >>> folders_of_table("file", "lake", "bank.eu")
    ('catalog:lake', 'bank', 'eu')
    >>> folders_of_table("hive://m", "hive://m", "bank")
    ('namespace:hive://m', 'bank')
    """
    is_address = catalog == namespace or ":" in catalog or "/" in catalog
    root = NAMESPACE + namespace if is_address or not catalog else CATALOG + catalog
    return (root, *parts_of(database))


def placed_by_path(id_: int, namespace: str, name: str) -> PlacedDataset:
    """Return a dataset that is in no database, with the folders of its path.

    >>> placed_by_path(2, "s3://lake", "raw/2026/a.csv")
    PlacedDataset(id=2, folders=('namespace:s3://lake', 'raw', '2026'), name='a.csv')
    """
    *folders, last = [part for part in name.split("/") if part] or [name]
    return PlacedDataset(id_, (NAMESPACE + namespace, *folders), last)


def opening_of(text: str) -> Opening:
    """Return the place that the id of a box opens.

    >>> opening_of("catalog:lake/raw/*38")
    Opening(path=('catalog:lake', 'raw'), first=38)
    """
    *path, last = text.split("/")
    if last.startswith("*") and last[1:].isdecimal():
        return Opening(tuple(map(unquote, path)), int(last[1:]))
    return Opening(tuple(map(unquote, (*path, last))))


def id_of_path(path: Path) -> str:
    """Return the id of the box at a path."""
    return "/".join(quote(part, safe=":", errors="replace") for part in path)


def fold_places(datasets: Collection[PlacedDataset], openings: Sequence[Opening]) -> PlaceMap:
    """Fold datasets into boxes, at most 40.

    All boxes around an opened one are open too, and so is what all datasets have in common. The
    frame that was opened last gets the room first.
    """
    for opening in openings:
        if not any(dataset.folders[: len(opening.path)] == opening.path for dataset in datasets):
            raise NotFoundError(f"nothing is at {id_of_path(opening.path)!r}: ask without `under`")
    innermost = [opening.path for opening in reversed(openings)] + [_common_path(datasets)]
    opened = list(dict.fromkeys(path for inner in innermost for path in _outwards(inner)))
    frames = _collect(datasets, frozenset(opened))
    filled = [frames[path] for path in opened if frames[path].groups]
    if len(filled) > MOST_BOXES:
        raise QuestionError(f"more than {MOST_BOXES} boxes are open: ask for fewer `under`")
    first = {opening.path: opening.first for opening in openings}
    boxes: list[Box] = []
    for place, frame in enumerate(filled):
        room = MOST_BOXES - len(boxes) - (len(filled) - place - 1)
        boxes += _boxes_in(frame, room, first.get(frame.path, 0))
    shown = [path for path in opened if path and _is_shown(frames[path], filled)]
    shown.sort(key=lambda path: (len(path), path))
    for box in boxes:
        box.frame = _nearest(box.frame, shown)
    return PlaceMap(boxes, [_frame_box(path, shown, datasets) for path in shown])


def _nearest(path: Path, shown: Collection[Path]) -> Path:
    """Return the innermost of these frames that a path leads through; () is outside of all."""
    return next((outward for outward in _outwards(path) if outward in shown), ())


def _is_shown(frame: _Frame, filled: Iterable[_Frame]) -> bool:
    """Return whether a frame holds a box, or several frames that do."""
    depth = len(frame.path)
    inner = {
        other.path[depth]
        for other in filled
        if len(other.path) > depth and other.path[:depth] == frame.path
    }
    return bool(frame.groups) or len(inner) > 1


def _outwards(path: Path) -> Iterator[Path]:
    """Yield a path and all paths around it."""
    for length in range(len(path), -1, -1):
        yield path[:length]


def _common_path(datasets: Iterable[PlacedDataset]) -> Path:
    """Return the folders that all of these datasets have in common."""
    paths = {dataset.folders for dataset in datasets}
    if not paths:
        return ()
    least, greatest = min(paths), max(paths)
    for place, (position, other) in enumerate(zip(least, greatest, strict=False)):
        if position != other:
            return least[:place]
    return least


def _collect(datasets: Iterable[PlacedDataset], opened: Collection[Path]) -> dict[Path, _Frame]:
    """Return the open frames with what stands in them, by the next folder or by dataset."""
    frames = {path: _Frame(path) for path in opened}
    frame_of: dict[Path, _Frame] = {}  # many datasets have the same folders
    for dataset in datasets:
        folders = dataset.folders
        frame = frame_of.get(folders)
        if frame is None:
            frame = frames[next(path for path in _outwards(folders) if path in opened)]
            frame_of[folders] = frame
        depth = len(frame.path)
        key = folders[depth] if depth < len(folders) else dataset.id
        frame.groups[key].append(dataset)
    return frames


def _boxes_in(frame: _Frame, room: int, first: int) -> Iterator[Box]:
    """Yield the boxes in a frame, the largest first; rests stand for those that have no room."""
    boxes = [_box_of(frame.path, group) for group in frame.groups.values()]
    boxes.sort(key=lambda box: (-len(box.datasets), box.name, box.id))
    if len(boxes) <= room:
        yield from boxes
        return
    first = first if first < len(boxes) and room > 2 else 0
    last = first + room - (2 if first else 1)
    if first:
        yield _rest(frame.path, 0, boxes[:first])
    yield from boxes[first:last]
    if boxes[last:]:
        yield _rest(frame.path, last, boxes[last:])


def _box_of(frame: Path, datasets: Sequence[PlacedDataset]) -> Box:
    if len(datasets) == 1:
        path = datasets[0].folders
        parts, type_ = (*path[len(frame) :], datasets[0].name), "dataset"
    else:
        path = _common_path(datasets)
        parts, type_ = path[len(frame) :], _type_of(path)
    return Box(id_of_path(path), type_, _label(path, parts), path, frame, datasets)


def _type_of(path: Path) -> str:
    if len(path) == 1:
        return path[0].partition(":")[0]
    return "database" if _has_databases(path) else "folder"


def _has_databases(path: Path) -> bool:
    root = path[0]
    return root.startswith(CATALOG) or names_tables(root.removeprefix(NAMESPACE))


def _label(path: Path, parts: Sequence[str]) -> str:
    """Return the name of a box: its parts from the frame on, without the kind of the first."""
    if parts and parts[0] == path[0]:
        parts = (parts[0].partition(":")[2], *parts[1:])
    return (("." if _has_databases(path) else "/") if path else "").join(parts)


def _rest(frame: Path, first: int, boxes: Sequence[Box]) -> Box:
    id_ = "/".join(filter(None, (id_of_path(frame), f"*{first}")))
    datasets = [dataset for box in boxes for dataset in box.datasets]
    return Box(id_, "rest", f"{len(boxes)} more", frame, frame, datasets, len(boxes))


def _frame_box(path: Path, shown: Collection[Path], datasets: Iterable[PlacedDataset]) -> Box:
    """Return an open frame as a box with all that stands in it."""
    around = _nearest(path[:-1], shown)
    inside = [dataset for dataset in datasets if dataset.folders[: len(path)] == path]
    label = _label(path, path[len(around) :])
    return Box(id_of_path(path), _type_of(path), label, path, around, inside, is_open=True)
