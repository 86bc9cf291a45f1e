"""Jars from the package registry, without Maven: PySpark brings Ivy, and Ivy fetches.

Each set of jars lies in a folder of its own below .cache/jars and is there completely or not at
all. Every file is checked against jars.sha256 before it is used; a set that is there needs no
network. Standard library only, because `make` runs this before anything else works: `python -m
deploy.jars iceberg-4.1` prints the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent
PINS = Path(__file__).resolve().parent / "jars.sha256"
FETCH_SECONDS = 900
OLDEST_JAVA = 17


class JarsError(Exception):
    """A set of jars cannot be had; the message says which, why, and the way out."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One coordinate of a repository: organisation, module, revision."""

    organisation: str
    module: str
    revision: str


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are used together; `transitive` also fetches what they depend on."""

    jars: tuple[Jar, ...]
    transitive: bool = False


def jar(coordinate: str) -> Jar:
    """Read `organisation:module:revision`.

    >>> jar("org.xerial:sqlite-jdbc:3.50.3.0").module
    'sqlite-jdbc'
    """
    return Jar(*coordinate.split(":"))


def jar_set(*coordinates: str, transitive: bool = False) -> JarSet:
    """Name a set by its coordinates."""
    return JarSet(tuple(jar(coordinate) for coordinate in coordinates), transitive)


SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"  # the JDBC catalog of the demo and of the tests

# Everything but the broker is listed in full: Spark has the rest, and a second copy of a jar breaks
# it.
SETS: Mapping[str, JarSet] = {
    "kafka": jar_set("org.apache.kafka:kafka_2.13:4.3.1", transitive=True),
    "iceberg-3.5": jar_set("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0", SQLITE),
    "iceberg-4.0": jar_set("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0", SQLITE),
    "iceberg-4.1": jar_set("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", SQLITE),
    "delta-3.5": jar_set("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
    "delta-4.0": jar_set("io.delta:delta-spark_4.0_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "delta-4.1": jar_set("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "delta-4.2": jar_set("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "paimon-3.5": jar_set("org.apache.paimon:paimon-spark-3.5:0.9.0"),
    "hudi-3.5": jar_set("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"),
    "spark-kafka-3.5": jar_set(
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.7",
        "org.apache.kafka:kafka-clients:3.4.1",
        "org.apache.commons:commons-pool2:2.11.1",
    ),
    "spark-kafka-4.0": jar_set(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.0",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
    "spark-kafka-4.1": jar_set(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    "openlineage-2.12": jar_set("io.openlineage:openlineage-spark_2.12:1.53.0"),
    "openlineage-2.13": jar_set("io.openlineage:openlineage-spark_2.13:1.53.0"),
}


def fetch(name: str) -> Path:
    """Give the folder of a set, fetching it when it is not there.

    Raise JarsError when it cannot be had.
    """
    folder = cache() / "jars" / name
    pins = pins_of(name)
    with locked(cache() / f"{name}.lock"):
        if not is_complete(folder, pins):
            arrived = retrieve(name)
            try:
                check(arrived, pins, name)
                shutil.rmtree(folder, ignore_errors=True)
                shutil.move(arrived, folder)
            finally:
                shutil.rmtree(arrived, ignore_errors=True)
    return folder


def cache() -> Path:
    """Return the folder of fetched things: STRANDLINE_CACHE_DIR, else .cache in the checkout."""
    folder = Path(os.environ.get("STRANDLINE_CACHE_DIR") or ROOT / ".cache")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_complete(folder: Path, pins: Mapping[str, str]) -> bool:
    """Return true if the folder holds exactly the pinned files, byte for byte."""
    return bool(pins) and digests(folder) == dict(pins)


def check(folder: Path, pins: Mapping[str, str], name: str) -> None:
    """Refuse what differs from its pin."""
    present = digests(folder)
    wrong = sorted(
        file for file in present.keys() | pins.keys() if present.get(file) != pins.get(file)
    )
    if wrong:
        raise JarsError(
            f"jars {name}: what was fetched differs from {PINS.name}: {', '.join(wrong[:5])}"
        )


def digests(folder: Path) -> dict[str, str]:
    """Name and SHA-256 of each jar in a folder."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.jar")
    }


def pins_of(name: str) -> dict[str, str]:
    """Return the pinned files of a set: lines of `sha256 set/file` as sha256sum writes them."""
    pins = {}
    for line in PINS.read_text().splitlines():
        if line and not line.startswith("#"):
            digest, path = line.split()
            folder, _, file = path.partition("/")
            if folder == name:
                pins[file] = digest
    return pins


def retrieve(name: str) -> Path:
    """Run Ivy into a new folder beside the final one.

    A move then makes the set visible at once.
    """
    if name not in SETS:
        raise JarsError(f"jars {name}: no such set; there are {', '.join(sorted(SETS))}")
    arrived = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache()))
    wanted = arrived / "ivy.xml"
    wanted.write_text(ivy_xml(name, SETS[name]))
    pattern = arrived / "[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), "-cp", str(ivy()), "org.apache.ivy.Main", "-cache", str(cache() / "ivy")]
    command += [
        "-ivy",
        str(wanted),
        "-confs",
        "default",
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        str(pattern),
    ]
    result = run(command, name)
    wanted.unlink()
    if result.returncode:
        shutil.rmtree(arrived)
        raise JarsError(f"jars {name}: cannot be fetched: {reason_of(result.stdout)}")
    return arrived


def run(command: list[str], name: str) -> subprocess.CompletedProcess[str]:
    """Run Ivy, bounded in time, with its stderr among its stdout."""
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JarsError(f"jars {name}: not fetched within {FETCH_SECONDS} s") from error


def ivy_xml(name: str, wanted: JarSet) -> str:
    """Ivy's module file for a set."""
    transitive = str(wanted.transitive).lower()
    rows = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.module)} "
        f"rev={quoteattr(jar.revision)}"
        f' transitive="{transitive}" conf="default-&gt;default"/>'
        for jar in wanted.jars
    )
    info = f'<info organisation="strandline" module="{name}"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{rows}</dependencies></ivy-module>'


def reason_of(output: str) -> str:
    """Return the line of Ivy's report that tells most."""
    lines = [line.strip(" :\t") for line in output.splitlines()]
    telling = [
        line
        for line in lines
        if re.search(r"not found|Exception|ERROR|FAILED|refused|timed out", line)
    ]
    return (telling or lines or ["no output"])[0]


def ivy() -> Path:
    """Return the Ivy jar inside PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise JarsError(
            f"PySpark is not installed for {sys.executable}, "
            "and its Ivy is what fetches; run `make .venv`"
        )
    files = sorted((Path(spec.submodule_search_locations[0]) / "jars").glob("ivy-*.jar"))
    if not files:
        raise JarsError("PySpark holds no jars/ivy-*.jar, which is what fetches")
    return files[0]


def java() -> str:
    """Return the `java` to use, at least version 17: JAVA_HOME's, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if program is None:
        raise JarsError(
            f"no `java` {'in JAVA_HOME' if home else 'on PATH'}; "
            f"install Java {OLDEST_JAVA} or newer"
        )
    said = subprocess.run(
        [program, "-version"], capture_output=True, text=True, timeout=60, check=False
    ).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise JarsError(
            f"{program} is Java {version[1] if version else '?'}; "
            f"Java {OLDEST_JAVA} or newer is needed"
        )
    return program


def class_path(folder: Path) -> str:
    """All jars of a folder for `java -cp`."""
    return str(folder / "*")


def comma_list(names: Iterable[str]) -> str:
    """Fetch several sets and give their files as `spark.jars` takes them."""
    return ",".join(str(file) for name in names for file in sorted(fetch(name).glob("*.jar")))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file lock: two `make` at once fetch once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pin(name: str) -> None:
    """Fetch a set without a check and write what came as its pins.

    For whoever changes a version.
    """
    arrived = retrieve(name)
    kept = (
        [line for line in PINS.read_text().splitlines() if f"  {name}/" not in line]
        if PINS.exists()
        else []
    )
    rows = [f"{digest}  {name}/{file}" for file, digest in digests(arrived).items()]
    PINS.write_text(
        "".join(f"{line}\n" for line in sorted(kept + rows, key=lambda row: row.split()[1]))
    )
    shutil.rmtree(arrived)


def main(argv: list[str]) -> int:
    """`jars.py [--pin] SET...`: print the folder of each set."""
    pinning = "--pin" in argv
    try:
        for name in (argument for argument in argv if argument != "--pin"):
            if pinning:
                pin(name)
            print(fetch(name))
    except JarsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
