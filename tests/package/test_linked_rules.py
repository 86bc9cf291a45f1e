"""The rules of redaction and the probe, in everything that is built from the tree.

The rules are one folder in the tree, and real files elsewhere.
"""

import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import pyfiles

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "collector" / "strandline" / "core" / "redaction" / "rules"
LINK = ROOT / "spark_integration" / "strandline_spark" / "openlineage" / "rules"
HATCHLING = Path(sys.executable).parent / "hatchling"
PROBE = "strandline_spark/jvm/probe.java"
COLLECTOR, EMITTER = "strandline.core.redaction.rules", "strandline_spark.openlineage.rules"


def build(project: Path, kind: str, folder: Path) -> Path:
    """Build the wheel or the sdist of a project, and return the folder with its contents."""
    built = folder / "built"
    subprocess.run(
        [HATCHLING, "build", "-t", kind, "-d", built], cwd=project, check=True, capture_output=True
    )
    (archive,) = built.iterdir()
    unpacked = folder / "unpacked"
    if kind == "wheel":
        return unzip(archive, unpacked)
    with tarfile.open(archive) as sdist:
        assert [member.name for member in sdist if member.issym() or member.islnk()] == []
        sdist.extractall(unpacked, filter="data")
    (root,) = unpacked.iterdir()
    return root


def unzip(archive: Path, folder: Path) -> Path:
    """Unpack a zip file that holds no links."""
    with zipfile.ZipFile(archive) as contents:
        assert [
            entry.filename
            for entry in contents.infolist()
            if stat.S_ISLNK(entry.external_attr >> 16)
        ] == []
        contents.extractall(folder)
    return folder


def wheel_of_collector(folder: Path) -> Path:
    return build(ROOT, "wheel", folder)


def sdist_of_collector(folder: Path) -> Path:
    return build(ROOT, "sdist", folder) / "collector"


def wheel_of_emitter(folder: Path) -> Path:
    return build(ROOT / "spark_integration", "wheel", folder)


def sdist_of_emitter(folder: Path) -> Path:
    return build(ROOT / "spark_integration", "sdist", folder)


def zip_of_emitter(folder: Path) -> Path:
    return unzip(pyfiles.build(folder / "built"), folder / "unpacked")


def redact(python: str, path: Path, module: str) -> str:
    """Redact a text with the rules below a path, under a Python that sees no installed packages."""
    program = f"import sys; sys.path.insert(0, {str(path)!r})\n"
    program += f"from {module} import hide; print(hide('password=hunter2 on db', '***'))"
    result = subprocess.run(
        [python, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    return (result.stdout + result.stderr).strip()


def test_the_emitter_links_to_the_rules_of_the_collector() -> None:
    assert LINK.is_symlink()
    assert not LINK.readlink().is_absolute()
    assert LINK.resolve() == RULES


@pytest.mark.parametrize(
    ("built", "module"),
    [
        (wheel_of_collector, COLLECTOR),
        (sdist_of_collector, COLLECTOR),
        (wheel_of_emitter, EMITTER),
        (sdist_of_emitter, EMITTER),
        (zip_of_emitter, EMITTER),
    ],
)
def test_built_distributions_contain_the_rules_as_real_files(
    built: Callable[[Path], Path], module: str, tmp_path: Path
) -> None:
    path = built(tmp_path)
    folder = path.joinpath(*module.split("."))

    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        file.name: file.read_bytes() for file in RULES.glob("*.py")
    }
    assert redact(sys.executable, path, module) == "password=*** on db"


@pytest.mark.parametrize("built", [wheel_of_emitter, sdist_of_emitter, zip_of_emitter])
def test_built_distribution_contains_the_java_source_of_the_probe(
    built: Callable[[Path], Path], tmp_path: Path
) -> None:
    text = (ROOT / "spark_integration" / PROBE).read_text()

    assert "public class Probe" in text
    assert (built(tmp_path) / PROBE).read_text() == text


def test_the_probe_is_read_from_a_zip(tmp_path: Path) -> None:
    places = [str(pyfiles.build(tmp_path)), sysconfig.get_path("purelib")]
    program = (
        f"import sys; sys.path += {places!r}\n"
        "from strandline_spark.jvm import probe\n"
        "print('.zip' in probe.__file__, 'public class Probe' in probe.source())"
    )

    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "True True"


def test_the_rules_run_on_python_3_10() -> None:
    python = shutil.which("python3.10")
    if (
        python is None
        or subprocess.run([python, "--version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no Python 3.10 here")

    assert redact(python, LINK.parents[2], EMITTER) == "password=*** on db"
