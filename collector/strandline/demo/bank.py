"""The parts of the demo: its folder, its Spark conf, the commands.

The emitter is switched on by the conf alone; the job files in examples/bank do not mention
Strandline.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_dir

from strandline.errors import DemoError, RefusedError
from strandline.store.sql.private_files import held_by_one_server

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

STREAMS = ("ingest", "credits", "debits", "balance")
TABLES = {"ingest": "transfers", "credits": "credits", "debits": "debits", "balance": "balance"}
ONE_APPLICATION_BELOW = (
    5 * 1024**3
)  # bytes of free memory: four drivers take 2.6 GB, broker and collector another
FOREVER = 10**6
MARK = "made-by-strandline-demo"
STORE = "strandline.db"


def parts_root() -> Path:
    """Return the folder that holds deploy/ and examples/bank/.

    It is the checkout, or a folder inside the installed package.
    """
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "demo_files", package.parent.parent, Path.cwd()):
        if (candidate / "examples" / "bank" / "ingest.py").is_file() and (
            candidate / "deploy" / "kafka.py"
        ).is_file():
            return candidate
    raise DemoError(
        "the demo's job files (examples/bank) are not in this installation; install strandline "
        "from a wheel, or run the demo in a checkout"
    )


def require_spark(root: Path) -> None:
    """Raise DemoError if a package of the demo on real parts is missing."""
    missing = [name for name in ("pyspark", "pyiceberg") if find_spec(name) is None]
    if not missing:
        return
    packages = "'pyspark==4.1.4' 'pyiceberg[sql-sqlite,pyarrow]' 'pandas<3' strandline-spark"
    advice = "run make demo" if is_checkout(root) else f"pip install {packages}"
    raise DemoError(
        f"the demo needs {' and '.join(missing)}: {advice}; "
        "strandline demo --replay shows a recorded bank without them"
    )


def is_checkout(root: Path) -> bool:
    """Return whether the demo's files are those of a checkout, not of an installed package."""
    return (root / "Makefile").exists()


@dataclass(frozen=True, slots=True)
class Bank:
    """One run of the demo: where it lives, how long its streams are, where its events go."""

    root: Path
    folder: Path
    rounds: int
    port: int

    @property
    def url(self) -> str:
        """The collector's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def catalog(self) -> str:
        """The SQLite file of the Iceberg catalog."""
        return str(self.folder / "lake" / "catalog.db")

    @property
    def database(self) -> str:
        """The collector's database as a URL."""
        return f"sqlite:///{self.folder / STORE}"

    @property
    def cache(self) -> Path:
        """Return the folder of fetched jars.

        It is in the checkout, or in the user's cache for an installed package.
        """
        if folder := os.environ.get("STRANDLINE_CACHE_DIR"):
            return Path(folder)
        return (
            self.root / ".cache" if is_checkout(self.root) else Path(user_cache_dir("strandline"))
        )

    @property
    def stop_file(self) -> Path:
        """The streams end between two micro-batches once this file is there."""
        return self.folder / "stop"

    def job(self, name: str, example: str = "bank") -> list[str]:
        """Return the command that starts a job."""
        return [sys.executable, str(self.root / "examples" / example / f"{name}.py")]

    def deploy_environ(self) -> dict[str, str]:
        """The environment of what deploy/ does."""
        return os.environ | {"STRANDLINE_CACHE_DIR": str(self.cache)}

    def environ(self, keep: bool) -> dict[str, str]:
        """The environment of the jobs: where their conf is, and the bank's own pace."""
        return os.environ | {
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "tmp"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONWARNINGS": "ignore",
            "BANK_ROUNDS": str(FOREVER if keep else self.rounds),
            "BANK_CHECKPOINTS": str(self.folder / "checkpoints"),
            "BANK_STOP": str(self.stop_file),
        }


@contextmanager
def claimed_folder(folder: Path) -> Iterator[None]:
    """Hold the demo's folder, made anew, or raise DemoError while another demo has it.

    The claim ends with the process. Nothing is removed before it holds.
    """
    _refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MARK).open("a") as mark:
        if fcntl is not None:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DemoError(
                    f"another demo is running in {folder}; stop it, or choose another folder "
                    "with --dir"
                ) from None
        empty_folder(folder)
        yield


def empty_folder(folder: Path) -> None:
    """Make the demo's folder anew, but never remove one that is in use or not a demo's."""
    _refuse_foreign(folder)
    _refuse_served(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in folder.iterdir():
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        elif part.name != MARK:
            part.unlink()
    for name in ("conf", "lake", "logs"):
        (folder / name).mkdir()
    (folder / MARK).touch()


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise DemoError(f"{folder} is not empty and not a demo's; choose another with --dir")


def _refuse_served(folder: Path) -> None:
    """Raise DemoError while a collector serves the store of an earlier demo."""
    store = folder / STORE
    if not store.exists():
        return
    try:
        with held_by_one_server(store):
            return
    except RefusedError:
        raise DemoError(
            f"a collector serves {store}; stop it, or choose another folder with --dir"
        ) from None


def write_conf(
    bank: Bank, jars: str, transport: Mapping[str, str], cores: int, lease_seconds: int = 60
) -> None:
    """Write spark-defaults.conf.

    A small driver that starts quickly, the catalog `lake`, and the emitter.
    """
    conf = spark_conf(bank, jars, cores) | emitter_conf(bank, transport, lease_seconds)
    rows = "".join(f"{key} {value}\n" for key, value in conf.items())
    (bank.folder / "conf" / "spark-defaults.conf").write_text(rows)
    (bank.folder / "conf" / "log4j2.properties").write_text(LOG4J)


def spark_conf(bank: Bank, jars: str, cores: int) -> dict[str, str]:
    """Spark and Iceberg, without a word of Strandline."""
    return {
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": jars,
        "spark.sql.warehouse.dir": str(bank.folder / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{bank.catalog}",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.warehouse": (bank.folder / "lake").as_uri(),
        "spark.sql.catalog.lake.cache-enabled": "false",
    }


def emitter_conf(bank: Bank, transport: Mapping[str, str], lease_seconds: int) -> dict[str, str]:
    """The lines that switch lineage on."""
    return {
        "spark.strandline.enabled": "true",
        "spark.strandline.heartbeat.seconds": str(lease_seconds),
        "spark.strandline.spool.dir": str(bank.folder / "spool"),
        "spark.strandline.collector.url": bank.url,
        **{f"spark.openlineage.transport.{key}": value for key, value in transport.items()},
    }


def kafka_transport(bootstrap: str) -> dict[str, str]:
    """Events go to the topic."""
    return {
        "type": "kafka",
        "topicName": "openlineage.events",
        "properties.bootstrap.servers": bootstrap,
        "properties.acks": "all",
    }


def http_transport(url: str) -> dict[str, str]:
    """Events go straight to the collector."""
    return {"type": "http", "url": url}


def free_memory() -> int:
    """Bytes that new processes can have; a large number where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration):
        return 2**62


def port_or_another(wanted: int) -> int:
    """The port that was asked for, or a free one where somebody listens on it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{12}
"""
