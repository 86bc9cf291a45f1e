"""`python -m bench [--short] [NAME[=SIZE,...]...]`.

Runs every benchmark of this folder, then prints all figures.

A benchmark is a module here with `run(short: bool) -> None` that calls `report.record`; `--short`
is a run for CI, whose figures say that everything still works and nothing about speed. One with
`run(short, sizes)` takes sizes of its own.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from inspect import signature

import bench
from bench import report


def main() -> int:
    """Run what was asked for; 1 if a benchmark failed."""
    known = benchmarks()
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a minute's run, for CI")
    parser.add_argument(
        "names", nargs="*", type=_asked, help=f"of {', '.join(known)}; all of them if none is named"
    )
    options = parser.parse_args()
    asked = dict(options.names) or dict.fromkeys(known, ())
    if unknown := set(asked) - set(known):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    if unsized := [
        name
        for name, sizes in asked.items()
        if sizes and "sizes" not in signature(known[name]).parameters
    ]:
        parser.error(f"no sizes of one's own: {', '.join(unsized)}")
    failed = [
        name
        for name in known
        if name in asked and not _ran(name, known[name], options.short, asked[name])
    ]
    print(f"\n{report.machine()}\n{report.table()}")
    return 1 if failed else 0


def _asked(text: str) -> tuple[str, tuple[int, ...]]:
    """A name and its sizes."""
    name, _, sizes = text.partition("=")
    return name, tuple(int(size) for size in sizes.split(",") if size)


def benchmarks() -> dict[str, Callable[..., None]]:
    """`run` of each module that has one, by the module's name."""
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(bench.__path__)
        if not module.name.startswith("_")
    )
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name: module.run for name, module in modules.items() if hasattr(module, "run")}


def _ran(name: str, run: Callable[..., None], short: bool, sizes: Sequence[int]) -> bool:
    print(f"--- {name}", flush=True)
    try:
        run(short, sizes) if sizes else run(short)
    except Exception as error:  # noqa: BLE001 - the others are still worth running
        print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
