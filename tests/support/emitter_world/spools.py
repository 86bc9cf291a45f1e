"""Looking into a spool, and disks that are full for a moment."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline_spark.delivery.spool import SpoolFile
from strandline_spark.delivery.transport import Message


@contextmanager
def files_of(most: int) -> Iterator[None]:
    """This process can make no file larger than that many bytes: a write at the border is done in part, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def kept(folder: Path) -> list[Message]:
    """What lies in the spool."""
    files = [SpoolFile(path, -1) for path in folder.glob("*.spool")]
    return [found for file in files for found in file.messages() if found is not None]
