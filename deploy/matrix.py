"""`python -m deploy.matrix [--short] [VERSION...]`.

The emitter's tests on every Spark that it supports.

Each version has an environment of its own below .cache/matrix, and every table format that has a
runtime there. The environments differ in PySpark alone: `locks/matrix.txt` has the other packages,
`locks/matrix-pyspark.txt` one pin for each version. What cannot be had fails with the reason:
nothing is passed over in silence. `--lock` resolves both files anew.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from deploy import jars

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "locks"
PACKAGES = LOCKS / "matrix.txt"
PYSPARKS = LOCKS / "matrix-pyspark.txt"
TESTS = ("tests/spark/columns", "tests/spark/formats")
SHORT_TESTS = ("tests/spark/formats/test_every_spark.py",)
SHORT = "3.5"  # the Spark that is farthest from the suite's own
INSTALL_SECONDS, TEST_SECONDS, SHORT_SECONDS = 1800, 3600, 900
# What the tests need besides the emitter's own dependencies; versions are those of locks/dev.txt.
NEEDED = (
    "pytest",
    "hypothesis",
    "jsonschema-rs",
    "pyarrow",
    "pandas<3",
    "pyiceberg[sql-sqlite]",
    "deltalake",
)


class MatrixError(Exception):
    """A version cannot be tried; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Version:
    """One minor version of Spark.

    The release that is tried, the formats with a runtime, and what it lacks.
    """

    spark: str
    pyspark: str
    formats: tuple[str, ...]
    lacks: str = ""

    @property
    def pin(self) -> str:
        """Its PySpark with the hash, as pip reads it."""
        for line in PYSPARKS.read_text().splitlines():
            if line.startswith(f"pyspark=={self.pyspark} "):
                return line
        raise MatrixError(
            f"{PYSPARKS.name} lacks PySpark {self.pyspark}; "
            "`python -m deploy.matrix --lock` adds it"
        )

    @property
    def folder(self) -> Path:
        """Its environment."""
        return jars.cache() / "matrix" / self.spark

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


VERSIONS = (
    Version(
        "3.5",
        "3.5.9",
        ("iceberg", "delta", "paimon", "hudi"),
        "Python data sources, recursive CTEs, pipe syntax, variant",
    ),
    Version("4.0", "4.0.5", ("iceberg", "delta"), "Paimon and Hudi runtimes, recursive CTEs"),
    Version("4.1", "4.1.4", ("iceberg", "delta"), "Paimon and Hudi runtimes"),
    Version("4.2", "4.2.1", ("delta",), "Iceberg, Paimon and Hudi runtimes"),
    Version("4.3", "4.3.0", (), "Iceberg, Delta, Paimon and Hudi runtimes"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one version."""

    version: Version
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def ok(self) -> bool:
        """True if something was tried and all of it passed."""
        return not self.error and self.failed == 0 and self.passed > 0


def tried(version: Version, tests: Sequence[str], seconds: int) -> Outcome:
    """Make a version's environment, fetch its runtimes, run the tests."""
    begun = time.monotonic()
    print(f"--- Spark {version.pyspark}: {', '.join((*version.formats, 'files'))}", flush=True)
    try:
        prepare(version)
        print(f"ready after {time.monotonic() - begun:.0f} s", flush=True)
        report = run_tests(version, tests, seconds)
        return counted(version, report, time.monotonic() - begun)
    except (MatrixError, jars.JarsError) as error:
        print(error, file=sys.stderr, flush=True)
        return Outcome(version, seconds=time.monotonic() - begun, error=str(error))


def prepare(version: Version) -> None:
    """Make the environment as its lock says, and fetch the jars of its formats."""
    with jars.locked(jars.cache() / f"matrix-{version.spark}.lock"):
        stamp, wanted = version.folder / "installed", fingerprint(version)
        if not stamp.is_file() or stamp.read_text() != wanted:
            install(version)
            stamp.write_text(wanted)
    for name in version.formats:
        jars.fetch(f"{name}-{version.spark}")


def fingerprint(version: Version) -> str:
    """Return a text that changes when the environment has to be made anew."""
    files = (PACKAGES, LOCKS / "build.txt", ROOT / "spark_integration" / "pyproject.toml")
    parts = [
        *(file.read_bytes() for file in files),
        version.pin.encode(),
        sys.version.encode(),
        bytes(ROOT),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def install(version: Version) -> None:
    """Make a virtual environment with the locked packages and the emitter from the tree."""
    print(f"installing {PACKAGES.relative_to(ROOT)} and PySpark {version.pyspark}", flush=True)
    run(version, [sys.executable, "-m", "venv", "--clear", str(version.folder)])
    pyspark = version.folder / "pyspark.txt"
    pyspark.write_text(version.pin)
    pip = [
        str(version.python),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-input",
    ]
    tree = ["--no-build-isolation", "--use-pep517"]
    run(version, [*pip, "--require-hashes", "-r", str(LOCKS / "build.txt")])
    run(version, [*pip, *tree, "--require-hashes", "-r", str(PACKAGES), "-r", str(pyspark)])
    run(version, [*pip, *tree, "--no-deps", "-e", str(ROOT / "spark_integration")])


def run(version: Version, command: list[str]) -> None:
    """Run one step of an installation; what it says counts only where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        step = " ".join(command[:4])
        raise MatrixError(
            f"Spark {version.spark}: {step}: not done in {INSTALL_SECONDS} s"
        ) from error
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise MatrixError(
            f"Spark {version.spark}: {' '.join(command[:5])}: {' | '.join(output[-3:]) or 'failed'}"
        )


def run_tests(version: Version, tests: Sequence[str], seconds: int) -> Path:
    """Run pytest in the version's environment; its report is what counts."""
    report = version.folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        str(version.python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junit-xml={report}",
        *tests,
    ]
    environ = {
        key: value for key, value in os.environ.items() if key not in {"SPARK_HOME", "PYTHONPATH"}
    }
    environ["STRANDLINE_MATRIX"] = version.spark
    try:
        subprocess.run(command, cwd=ROOT, env=environ, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise MatrixError(
            f"Spark {version.spark}: the tests took longer than {seconds} s"
        ) from error
    if not report.is_file():
        raise MatrixError(f"Spark {version.spark}: pytest left no report")
    return report


def counted(version: Version, report: Path, seconds: float) -> Outcome:
    """Return an outcome from pytest's report."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))

    def total(name: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return Outcome(version, total("tests") - failed - skipped, failed, skipped, seconds)


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a version."""
    lines = [
        (
            f"\n{'Spark':<8}{'formats':<30}{'passed':>7}{'failed':>7}{'skipped':>8}{'seconds':>9}  "
            "not there"
        )
    ]
    for outcome in outcomes:
        formats = ", ".join((*outcome.version.formats, "files"))
        numbers = (
            f"{outcome.passed:>7}{outcome.failed:>7}{outcome.skipped:>8}{outcome.seconds:>9.0f}"
        )
        lines.append(
            f"{outcome.version.pyspark:<8}{formats:<30}{numbers}  "
            f"{outcome.error or outcome.version.lacks}"
        )
    return "\n".join(lines)


def lock() -> None:
    """Resolve the packages of all versions.

    Raise MatrixError where a version needs others than the first one.
    """
    packages, pysparks = "", []
    for version in VERSIONS:
        others, pyspark = resolved(version)
        if packages not in ("", others):
            raise MatrixError(
                f"Spark {version.spark} needs other packages than Spark "
                f"{VERSIONS[0].spark}: no common lock"
            )
        packages = others
        pysparks.append(pyspark)
    PACKAGES.write_text(packages)
    PYSPARKS.write_text("".join(f"{pyspark}\n" for pyspark in pysparks))


def resolved(version: Version) -> tuple[str, str]:
    """Resolve a version's packages, with the versions of locks/dev.txt where it has them.

    The lock, and PySpark's line.
    """
    requirements = "\n".join([f"pyspark=={version.pyspark}", *NEEDED, ""])
    limits = jars.cache() / "matrix" / "constraints.txt"
    limits.parent.mkdir(parents=True, exist_ok=True)
    limits.write_text("\n".join(pins()))
    command = (
        f"{Path(sys.executable).parent}/uv pip compile --quiet --universal "
        "--generate-hashes --no-emit-index-url"
    )
    command += f" --no-emit-find-links --no-header --no-annotate --python-version 3.11 -c {limits}"
    command += " --extra kafka spark_integration/pyproject.toml -"
    compiled = subprocess.run(
        command.split(),
        input=requirements,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=INSTALL_SECONDS,
        cwd=ROOT,
    )
    blocks = re.split(r"^(?=\S)", compiled.stdout, flags=re.MULTILINE)
    (pyspark,) = (block for block in blocks if block.startswith("pyspark=="))
    blocks.remove(pyspark)
    return "".join(blocks), " ".join(pyspark.replace("\\\n", " ").split())


def pins() -> list[str]:
    """`name==version` of all that the suite has locked, but for Spark."""
    lines = [
        line.removesuffix("\\").strip() for line in (LOCKS / "dev.txt").read_text().splitlines()
    ]
    return [
        line
        for line in lines
        if re.match(r"[a-z0-9].*==", line) and not line.startswith(("pyspark", "py4j"))
    ]


def main(argv: Sequence[str]) -> int:
    """Try what was asked for; 1 if anything did not pass."""
    known = {version.spark: version for version in VERSIONS}
    parser = argparse.ArgumentParser("matrix", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help=f"a small set on Spark {SHORT} only, for CI"
    )
    parser.add_argument(
        "--lock", action="store_true", help="resolve the packages of all versions anew; needs uv"
    )
    parser.add_argument(
        "versions",
        nargs="*",
        metavar="VERSION",
        help=f"of {', '.join(known)}; all if none is named",
    )
    options = parser.parse_args(argv)
    if unknown := set(options.versions) - set(known):
        parser.error(f"no such version of Spark: {', '.join(sorted(unknown))}")
    chosen = [known[name] for name in (options.versions or ([SHORT] if options.short else known))]
    if options.lock:
        try:
            lock()
        except MatrixError as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    tests, seconds = (SHORT_TESTS, SHORT_SECONDS) if options.short else (TESTS, TEST_SECONDS)
    outcomes = [tried(version, tests, seconds) for version in chosen]
    print(f"\nPython {platform.python_version()}{table(outcomes)}")
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
