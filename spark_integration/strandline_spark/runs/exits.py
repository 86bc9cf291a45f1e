"""The end of the program.

By an exception that nobody caught, or by `sys.exit` with a code that a scheduler calls a failure.

Python forgets a SystemExit before it calls what is registered with `atexit`. But it asks the
exception for its code, and then, unlike when a program catches it, no Python code is running.
`raise SystemExit(3)` without `sys.exit` is not seen.
"""

from __future__ import annotations

import sys
from typing import NoReturn

_codes: list[object] = []


class _Exit(SystemExit):
    """A SystemExit that notes that the interpreter itself asks for its code."""

    @property
    def code(self) -> object:  # type: ignore[override]
        code = self.args[0] if len(self.args) == 1 else (self.args or None)
        if sys._getframe().f_back is None:
            _codes.append(code)
        return code


_Exit.__name__ = _Exit.__qualname__ = "SystemExit"  # as whoever shows it expects
_Exit.__module__ = "builtins"


def note_exits() -> None:
    """From now on `sys.exit` is noted."""
    if getattr(sys.exit, "__module__", None) != __name__:
        sys.exit = _exit


def _exit(status: object = None, /) -> NoReturn:
    """Exit the interpreter by raising SystemExit(status)."""
    raise (
        _Exit(*status)
        if isinstance(status, tuple)
        else _Exit(*([] if status is None else [status]))
    )


def uncaught() -> str | None:
    """The exception that ended the program, as Python's interpreter remembers it.

    A prompt outlives its exceptions.
    """
    if hasattr(sys, "ps1"):
        return None
    error = getattr(sys, "last_value", None)
    if error is not None:
        return f"{type(error).__name__}: {error}"
    code = _codes[-1] if _codes else None
    return f"SystemExit: {code}" if code is not None and code != 0 else None
