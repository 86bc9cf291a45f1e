"""A streaming query's checkpoint folder, as a rollback changes it.

On a local disk, or wherever pyarrow's file systems reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from strandline.errors import RefusedError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_LOGS = ("offsets", "commits")


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """The folder at a location, which may be gone already."""

    location: str

    def batches(self, log: str) -> list[int]:
        """Return the micro-batches that `offsets` or `commits` hold."""
        return sorted(int(name) for name in self.names(log) if name.isdigit())

    def ends_with(self, batch: int) -> bool:
        """Return whether both logs hold the micro-batch and nothing after it."""
        return all(self.batches(log)[-1:] == [batch] for log in _LOGS)

    def is_empty(self) -> bool:
        """Return whether there is nothing (any more)."""
        return not self.names("")

    def cut(self, batch: int) -> None:
        """Remove what comes after a micro-batch, the newest first.

        Killed in between, the logs have no hole.
        """
        system, path = self._there()
        for log in reversed(_LOGS):
            for number in reversed(self.batches(log)):
                if number > batch:
                    for name in (f".{number}.crc", str(number)):
                        if name in self.names(log):
                            system.delete_file(f"{path}/{log}/{name}")

    def clear(self) -> None:
        """Remove all that is in it. `metadata` goes first: what is left is then no query's."""
        if self.is_empty():
            return
        system, path = self._there()
        for name in ("metadata", ".metadata.crc"):
            if name in self.names(""):
                system.delete_file(f"{path}/{name}")
        system.delete_dir_contents(path)

    def names(self, below: str) -> list[str]:
        """Return the names of what lies in a folder below; none where there is no such folder."""
        from pyarrow.fs import FileSelector

        system, path = self._there()
        entries: Any = system.get_file_info(
            FileSelector(f"{path}/{below}".rstrip("/"), allow_not_found=True)
        )
        return [entry.base_name for entry in entries]

    def _there(self) -> tuple[FileSystem, str]:
        try:
            from pyarrow.fs import FileSystem, LocalFileSystem
        except ImportError as error:
            raise RefusedError(
                "pyarrow is needed to reach checkpoints: pip install 'pyiceberg[pyarrow]'"
            ) from error
        address = urlsplit(self.location)
        if address.scheme in ("", "file"):
            return LocalFileSystem(), unquote(address.path).rstrip("/")
        try:
            system, path = FileSystem.from_uri(self.location)
        except (OSError, ValueError) as error:
            raise RefusedError(
                f"{self.location}: the checkpoint cannot be reached: {error}"
            ) from error
        return system, path.rstrip("/")
