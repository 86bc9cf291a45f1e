"""`python -m bench [--short] [NAME[=SIZE,...]...]`.

Runs the named benchmarks of this folder, or all of them, then prints all figures.

A benchmark is a module here with `run(short: bool) -> None` that calls `report.record`; `--short`
is a run for CI, which says that everything still works and nothing about speed. One with
`run(short, sizes)` takes sizes of its own.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable

import bench
from bench import report


def main() -> int:
    """Run what the command line names; 1 if a benchmark failed."""
    known = benchmarks()
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a minute's run, for CI")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all if none is named")
    options = parser.parse_args()
    report.judging = not options.short
    failed = False
    for argument in options.names or known:
        name, _, sizes = argument.partition("=")
        if name not in known:
            parser.error(f"no such benchmark: {name}")
        print(f"--- {name}", flush=True)
        run = known[name]
        try:
            if sizes:
                run(options.short, [int(size) for size in sizes.split(",")])
            else:
                run(options.short)
        except Exception as error:  # noqa: BLE001 - the others are still worth running
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
    print(f"\n{report.machine()}\n{report.table()}")
    return int(failed)


def benchmarks() -> dict[str, Callable[..., None]]:
    """`run` of each module that has one, by the module's name."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__))
    modules = {name: importlib.import_module(f"bench.{name}") for name in names if name[0] != "_"}
    return {name: module.run for name, module in modules.items() if hasattr(module, "run")}


if __name__ == "__main__":
    sys.exit(main())
