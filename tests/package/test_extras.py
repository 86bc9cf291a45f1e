"""The base installation can serve: no server module needs an extra."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVING = """
import sys
from importlib.abc import MetaPathFinder

class Refusing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

ABSENT = frozenset(sys.argv[2:])
sys.meta_path.insert(0, Refusing())
from starlette.testclient import TestClient
from strandline.api.app import create_app
from strandline.cli import main
from strandline.settings import Settings
from strandline.store.sql.engine import make_engine, migrate

engine = make_engine(sys.argv[1])
migrate(engine)
with TestClient(create_app(engine, Settings(database_url=sys.argv[1])), base_url="http://127.0.0.1:5000") as client:
    assert client.get("/api/v2/jobs").status_code == 200
sys.exit(main(["datasets", "--json"], {"STRANDLINE_DATABASE_URL": sys.argv[1]}))
"""


def test_a_server_and_the_commands_need_no_extra(tmp_path: Path) -> None:
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "locks/run.txt").read_text(), re.MULTILINE)
    everybody = {plain(name) for name in (*locked, "strandline")}
    extras = [
        module
        for module, owners in packages_distributions().items()
        if everybody.isdisjoint(map(plain, owners))
    ]
    needed_by_the_test = {
        "httpx",
        "httpx2",
        "httpcore",
        "httpcore2",
        "certifi",
    }  # starlette's test client

    answered = subprocess.run(
        [
            sys.executable,
            "-c",
            SERVING,
            f"sqlite:///{tmp_path}/strandline.db",
            *set(extras) - needed_by_the_test,
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert {"pyarrow", "pyspark"} <= set(extras)
    assert (answered.returncode, answered.stderr) == (0, "")


def plain(name: str) -> str:
    """Return the name of a distribution as the registry compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
