"""The unused memory that a process of its own keeps."""

import ctypes
import subprocess
import sys

import pytest

KEPT = """
import sys
from strandline.runtime.heap import give_back_large_blocks, trim_heap

if sys.argv[1] == "bounded":
    give_back_large_blocks()
largest = bytearray(b"x") * (30 << 20)  # from now on glibc keeps blocks of up to this size
del largest
blocks = [bytearray(b"x") * (1 << 20) for _ in range(100)]
above = [bytearray(b"x") * (100 << 10) for _ in range(100)]  # no block is at the end of the heap
del blocks
if sys.argv[1] == "trimmed":
    trim_heap()
print(int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20)
"""


@pytest.mark.parametrize(
    ("how", "is_kept"), [("by default", True), ("bounded", False), ("trimmed", False)]
)
def test_freed_blocks_go_back_to_the_kernel(how: str, is_kept: bool) -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("only glibc keeps them")
    done = subprocess.run(
        [sys.executable, "-c", KEPT, how], capture_output=True, text=True, check=True
    )

    assert (int(done.stdout) > 100) is is_kept
