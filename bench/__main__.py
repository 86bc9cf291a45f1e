"""`python -m bench [--short] [NAME...]`: runs every benchmark of this folder, then prints all figures.

A benchmark is a module here with `run(short: bool) -> None` that calls `report.record`; `--short` is a run for CI, whose
figures say that everything still works and nothing about speed.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable

import bench
from bench import report


def main() -> int:
    """Run what was asked for; 1 if a benchmark failed."""
    known = benchmarks()
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a minute's run, for CI")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all of them if none is named")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    failed = [name for name in known if name in (options.names or known) and not _ran(name, known[name], options.short)]
    print(f"\n{report.machine()}\n{report.table()}")
    return 1 if failed else 0


def benchmarks() -> dict[str, Callable[[bool], None]]:
    """`run` of each module that has one, by the module's name."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name: module.run for name, module in modules.items() if hasattr(module, "run")}


def _ran(name: str, run: Callable[[bool], None], short: bool) -> bool:
    print(f"--- {name}", flush=True)
    try:
        run(short)
    except Exception as error:  # noqa: BLE001 - the others are still worth running
        print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
