"""The memory that the C library keeps for a process.

By default glibc keeps freed blocks of up to 32 MB, in as many arenas as there are threads. After a
few large answers a server would hold hundreds of megabytes for good.
"""

import ctypes
from collections.abc import Callable
from typing import Any

MMAP_THRESHOLD, ARENA_MAX = -3, -8  # as malloc.h numbers them
LARGE = 256 << 10
ARENAS = 2


def give_back_large_blocks() -> None:
    """Let large blocks go back to the kernel when they are freed, where the C library is glibc."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(ARENA_MAX, ARENAS)


def trim_heap() -> None:
    """Give all free pages back to the kernel, where the C library is glibc."""
    malloc_trim = _function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def bytes_in_use(resident: Callable[[], int], bound: float) -> int:
    """Return the resident bytes; beyond the bound, free pages are given back first."""
    size = resident()
    if size <= bound:
        return size
    trim_heap()
    return resident()


def _function(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):
        return None
