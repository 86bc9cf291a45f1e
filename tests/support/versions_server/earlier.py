"""The program as it was before the newest migrations, from the project's own history."""

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from strandline.store.sql.engine import MIGRATIONS

ROOT = Path(__file__).resolve().parents[3]
VERSIONS = (MIGRATIONS / "versions").relative_to(ROOT).as_posix()


def earlier_program(folder: Path) -> Path | None:
    """The newest earlier program whose migrations are the first ones of today's, unpacked: a folder for PYTHONPATH.

    None where there is no history: an unpacked archive, or a clone without depth.
    """
    today = _migrations("HEAD")
    for commit in _git("log", "--diff-filter=A", "--format=%H", "--", VERSIONS).split():
        found = _migrations(f"{commit}^")
        if found and len(found) < len(today) and found == today[: len(found)]:
            tree = subprocess.run(
                ["git", "archive", f"{commit}^", "collector"], cwd=ROOT, check=True, capture_output=True
            ).stdout
            with tarfile.open(fileobj=BytesIO(tree)) as packed:
                packed.extractall(folder, filter="data")
            return folder / "collector"
    return None


def _migrations(commit: str) -> list[str]:
    listed = _git("ls-tree", "--name-only", commit, f"{VERSIONS}/").split()
    return sorted(name.rpartition("/")[2].partition("_")[0] for name in listed if name[-3:] == ".py" and "/00" in name)


def _git(*arguments: str) -> str:
    """What git answers; nothing where it, the history or the commit is missing."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
