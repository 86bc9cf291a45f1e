"""The hook that every Python start runs once the wheel is installed.

Waits for PySpark's SparkContext, and does nothing else.

Imports `sys` only, because bare Python starts pay for it (0.2 ms). A new context whose conf has
`spark.strandline.enabled=true` is handed to `activation`; executors' workers never make a context,
so there it is inert.
"""

import sys

TYPE_CHECKING = False  # typing itself is too slow to import here
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_MODULES = frozenset({"pyspark.core.context", "pyspark.context"})  # Spark 4.x, Spark 3.5


def install() -> None:
    """Wait for PySpark. Called twice, it waits once."""
    for name in _MODULES:
        if name in sys.modules:
            _wrap(sys.modules[name])
            return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Waits for PySpark's context module and has it wrapped after it ran.

    Steps aside at once when that is looked for.
    """

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in _MODULES:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """The real loader, and `_wrap` after it."""

    def __init__(self, loader: "Any") -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "Any":
        return self._loader.create_module(spec)

    def exec_module(self, module: "ModuleType") -> None:
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        _wrap(module)


def _wrap(module: "ModuleType") -> None:
    context_class = getattr(module, "SparkContext", None)
    start = getattr(context_class, "_do_init", None)
    if start is None or hasattr(start, "_strandline"):
        return

    def _do_init(self: "Any", *args: "Any", **kwargs: "Any") -> None:
        start(self, *args, **kwargs)
        _announce(self)

    _do_init._strandline = True  # type: ignore[attr-defined]
    context_class._do_init = _do_init  # type: ignore[union-attr]


def _announce(context: "Any") -> None:
    try:
        from strandline_spark.flags import ON

        if str(context._conf.get("spark.strandline.enabled", "")).strip().lower() in ON:
            from strandline_spark import activation

            activation.activate(context)
    except Exception as error:  # a job must start whatever happens here
        print(f"strandline: not active: {error}", file=sys.stderr)
