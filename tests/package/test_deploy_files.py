"""The files of deploy/ pass their linters and match the program.

There is no container engine in the suite: images and charts are looked at, not run. `make check`
lints the Dockerfile.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import helm_python
import jsonschema_rs
import kubernetes_validate
import pytest
import yaml
from compose_spec import PyCompose
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine

from fixtures.versions_server.server import running
from strandline.settings import (
    KAFKA_SECURITY,
    Settings,
    declared,
    read_dotenv,
    read_what_can_be_read,
)

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "strandline"
BOARD = DEPLOY / "grafana" / "strandline.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
KUBERNETES = ("1.31", "1.34")
OURS = re.compile(r"\bstrandline_[a-z_]+\b")
OTHERS = re.compile(r"\b(?:up|process_[a-z_]+)\b")
Json = dict[str, Any]


def settings_known() -> set[str]:
    """Every variable that the program reads."""
    names = [name for name, _ in declared()] + [f"kafka_{name}" for name in KAFKA_SECURITY]
    return {f"STRANDLINE_{name.upper()}" for name in names}


def expressions() -> Iterator[tuple[str, str]]:
    """(where, expression) of every alert and every panel of the board."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def metrics_named(expression: str) -> set[str]:
    """Return the metrics of an expression; what stands in quotes or braces is a label's."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}', "", re.sub(r"\b(?:by|on)\s*\([^)]*\)", "", expression))
    return set(OURS.findall(bare)) | set(OTHERS.findall(bare))


def render(**values: Any) -> list[Json]:
    """Return the manifests that the chart renders with these values."""
    with helm_python.Chart.load(CHART) as chart:
        rendered = chart.render(values, name="strandline", namespace="lineage")
    return [
        manifest
        for path, text in rendered.items()
        if path.endswith(".yaml")
        for manifest in yaml.safe_load_all(text)
        if manifest
    ]


@pytest.fixture(scope="module")
def manifests() -> list[Json]:
    """Return the manifests of servers, a consumer and the migration."""
    return render(kafka={"bootstrapServers": "kafka:9092"})


def containers(manifests: list[Json]) -> Iterator[tuple[Json, Json]]:
    """(pod's specification, container) of every workload."""
    for one in manifests:
        if one["kind"] in ("Deployment", "Job"):
            pod = one["spec"]["template"]["spec"]
            for container in pod["containers"]:
                yield pod, container


def test_image_copies_existing_files_that_are_not_ignored() -> None:
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "docker/Dockerfile").read_text(), re.MULTILINE
    )
    ignored = (DEPLOY / "docker/Dockerfile.dockerignore").read_text().splitlines()

    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored


def test_image_has_runtime_dependencies_and_no_build_tools() -> None:
    pins = {
        re.split(r"[=\[]", line)[0]
        for line in (ROOT / "locks/image.txt").read_text().splitlines()
        if "==" in line
    }
    project = (
        (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]
    )
    needed = {
        re.split(r"[>=\[;]", name)[0] for name in re.findall(r'^  "([^"]+)"', project, re.MULTILINE)
    }

    assert needed <= pins
    assert pins & {"hatchling", "setuptools", "pytest", "pyspark"} == set()


def test_compose_file_is_valid() -> None:
    text = (DEPLOY / "docker/compose.yaml").read_text()
    compose = yaml.safe_load(text)

    merged = re.sub(
        r"\$\{\w+:-(\w+)\}", r"\1", json.dumps(compose)
    )  # as compose sees it: merged, with the defaults
    PyCompose.from_yaml(merged).validate()
    with pytest.raises(ValueError, match="portz"):
        PyCompose.from_yaml(merged.replace('"ports"', '"portz"')).validate()
    for name, service in compose["services"].items():
        for needed in service.get("depends_on", ()):
            assert needed in compose["services"], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (
                source in compose["volumes"] or (DEPLOY / "docker" / source).resolve().exists()
            ), volume
        unknown = {
            key for key in service.get("environment", ()) if key.startswith("STRANDLINE_")
        } - settings_known()
        assert unknown == set(), name


def tokens_of_compose() -> Json:
    """Return the settings of the server with the identity provider's file laid over."""
    compose, more = (
        yaml.safe_load((DEPLOY / "docker" / name).read_text())
        for name in ("compose.yaml", "compose.oidc.yaml")
    )
    assert set(more) == {"services"}
    for name, service in more["services"].items():
        assert set(service) == {"environment"}
        compose["services"][name]["environment"] |= service["environment"]
    PyCompose.from_yaml(re.sub(r"\$\{\w+:-(\w+)\}", r"\1", json.dumps(compose))).validate()
    given: Json = compose["services"]["server"]["environment"]
    return given | {"STRANDLINE_RETENTION_DAYS": "90"}


def tokens_of_chart() -> Json:
    """Return the settings of the chart's pods with these values; the chart's schema takes them."""
    values, more = (
        yaml.safe_load((path).read_text())
        for path in (CHART / "values.yaml", CHART.parent / "values-oidc.yaml")
    )
    merged = values | more | {"settings": values["settings"] | more["settings"]}
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema_rs.validate(schema, merged)
    with pytest.raises(jsonschema_rs.ValidationError, match="OIDC"):
        jsonschema_rs.validate(schema, merged | {"settings": {"STRANDLINE_OIDC_TOKEN": "x"}})
    given: Json = merged["settings"]
    return given


@pytest.mark.parametrize("tokens", [tokens_of_compose, tokens_of_chart])
def test_identity_provider_examples_are_complete(tokens: Callable[[], Json]) -> None:
    given = tokens()

    assert given.keys() - {"PGPASSWORD"} <= settings_known()
    assert read_what_can_be_read(given).faults == ()
    without = {name: value for name, value in given.items() if name != "STRANDLINE_OIDC_AUDIENCE"}
    assert any(
        "STRANDLINE_OIDC_AUDIENCE" in str(fault) for fault in read_what_can_be_read(without).faults
    )


def test_servers_get_the_settings_of_the_identity_provider() -> None:
    manifests = render(**yaml.safe_load((CHART.parent / "values-oidc.yaml").read_text()))

    for _, container in containers(manifests):
        given = {one["name"]: one.get("value") for one in container["env"]}
        assert {"STRANDLINE_OIDC_GRANTS", "STRANDLINE_LOG_FORMAT"} <= given.keys()


def test_every_image_is_named_by_digest_and_says_its_version() -> None:
    compose = (DEPLOY / "docker/compose.yaml").read_text()
    base = re.search(r"ARG PYTHON_IMAGE=(\S+)", (DEPLOY / "docker/Dockerfile").read_text())
    assert base

    digest, version = "@sha256:[0-9a-f]{64}", r"v?\d+\.\d+[\w.-]*"
    assert re.fullmatch(rf"python:{version}{digest}", base[1])
    images = re.findall(r"^ +image: (?!strandline:)(.+)$", compose, re.MULTILINE)
    assert len(images) == 5
    pinned = rf"[\w./-]+{digest} # {version}"  # a compose file has a tag or a digest, not both
    assert [image for image in images if not re.fullmatch(pinned, image)] == []


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_chart_renders_valid_kubernetes_objects(manifests: list[Json], version: str) -> None:
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)
    workload = next(one for one in manifests if one["kind"] == "Deployment")
    misspelt = json.loads(json.dumps(workload).replace('"containers"', '"containerz"'))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, version, strict=True)


def test_pods_are_restricted_and_have_probes(manifests: list[Json]) -> None:
    kinds = sorted(one["kind"] for one in manifests)

    assert kinds == [
        *("Deployment", "Deployment", "Job", "NetworkPolicy", "NetworkPolicy", "NetworkPolicy"),
        *("PodDisruptionBudget", "PodDisruptionBudget", "Secret", "Service", "ServiceAccount"),
    ]
    for pod, container in containers(manifests):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        if container["args"] != ["migrate"]:
            assert {"startupProbe", "livenessProbe"} <= container.keys()


def test_pods_get_settings_that_exist_and_secrets_by_reference(manifests: list[Json]) -> None:
    for _, container in containers(manifests):
        plain = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        given = {one["name"] for one in container["env"]}
        assert given <= settings_known()
        assert read_what_can_be_read(plain).faults == ()
        assert "STRANDLINE_DATABASE_URL" in given - plain.keys()


def test_every_selector_finds_its_pods(manifests: list[Json]) -> None:
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in manifests
        if one["kind"] in ("Deployment", "Job")
    ]

    for one in manifests:
        spec = one.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector", {}))
        labels = selector.get("matchLabels", selector if one["kind"] == "Service" else {})
        if labels:
            assert sum(labels.items() <= pod.items() for pod in pods) == 1, one["metadata"]["name"]


def test_chart_uses_only_values_that_it_defines() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    named = {
        tuple(path.split("."))
        for file in CHART.glob("templates/*")
        for path in re.findall(r"\.Values\.([A-Za-z.]+)", file.read_text())
    }
    assert len(named) > 40
    for path in named:
        place: Any = values
        for part in path:
            assert part in place, ".".join(path)
            place = place[part]
    assert set(values) <= set(schema["properties"])


@pytest.mark.parametrize(
    "name",
    [
        "STRANDLINE_DATABASE_URL",
        "STRANDLINE_HOST",
        "STRANDLINE_PORT",
        "STRANDLINE_METRICS_PORT",
        "STRANDLINE_ADMIN_KEY",
        "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS",
    ],
)
def test_chart_refuses_settings_that_it_sets_itself(name: str) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text()))
    secret = {"name": name, "secret": "mine", "key": "key"}

    assert schema.is_valid(values)
    assert not schema.is_valid(values | {"settings": {name: "5001"}})
    assert not schema.is_valid(values | {"secretEnv": [secret]})


LOG_FORMAT_OF_A_SECRET = {"name": "STRANDLINE_LOG_FORMAT", "secret": "a", "key": "b"}


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"server": {"minAvailable": 2}}, "server.minAvailable: less than server.replicas"),
        ({"ingress": {"enabled": True}}, "ingress.tlsSecret: name the Secret"),
        ({"secretEnv": [LOG_FORMAT_OF_A_SECRET]}, "STRANDLINE_LOG_FORMAT is set twice"),
        ({"settings": {"STRANDLINE_PORT": "5001"}}, "STRANDLINE_PORT"),
    ],
)
def test_chart_refuses_values_that_contradict_each_other(values: Json, refusal: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(refusal)):
        render(**values)


def test_ingress_without_a_certificate_is_made_if_it_is_asked_for() -> None:
    rendered = render(ingress={"enabled": True, "allowHttp": True})

    (ingress,) = [one for one in rendered if one["kind"] == "Ingress"]

    assert "tls" not in ingress["spec"]
    assert ingress["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/proxy-body-size": "33m",
        "nginx.ingress.kubernetes.io/proxy-buffering": "off",
    }


def test_metrics_are_closed_by_default(manifests: list[Json]) -> None:
    def ports(manifests: list[Json]) -> dict[str, list[str]]:
        policies = [one for one in manifests if one["kind"] == "NetworkPolicy"]
        return {
            policy["metadata"]["name"]: [
                port["port"]
                for rule in policy["spec"].get("ingress") or ()
                for port in rule["ports"]
            ]
            for policy in policies
        }

    opened = render(networkPolicy={"metricsFrom": [{"podSelector": {}}]})

    of_servers = "strandline-server", "strandline-consumer", "strandline-migration"
    assert ports(manifests) == dict(zip(of_servers, (["http"], [], []), strict=True))
    assert ports(opened) == dict(
        zip(of_servers, (["http", "metrics"], ["metrics"], []), strict=True)
    )


def test_chart_has_the_version_of_the_program() -> None:
    from strandline import __version__

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("unit", ["strandline-serve", "strandline-consume@"])
def test_systemd_accepts_the_units(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd here")
    there = tmp_path / f"{unit}.service"
    text = (DEPLOY / "systemd" / f"{unit}.service").read_text()
    there.write_text(text.replace("/opt/strandline/bin/strandline", "/bin/true"))

    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(there).replace("@.", "@1.")],
        capture_output=True, text=True, check=False, env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )  # fmt: skip
    assert [line for line in told.stderr.splitlines() if "strandline" in line] == []


def test_units_use_existing_settings() -> None:
    given = read_dotenv(DEPLOY / "systemd/strandline.env")
    text = (DEPLOY / "systemd/strandline.env").read_text()

    assert read_what_can_be_read(given).faults == ()
    assert set(re.findall(r"^(?:# )?(STRANDLINE_[A-Z_]+)=", text, re.MULTILINE)) <= settings_known()
    assert read_what_can_be_read(given) != Settings()


def test_alerts_and_dashboard_use_existing_metrics(sqlite_engine: Engine) -> None:
    with running(sqlite_engine) as server:
        server.client.post("/api/v1/lineage", json={})
        text = server.client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    typed = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    there = {
        f"{name}{suffix}"
        for name, family in families.items()
        for suffix in typed.get(family.type, ("",))
    } | {"up"}

    named = {(where, metric) for where, one in expressions() for metric in metrics_named(one)}
    assert len({metric for _, metric in named}) > 15
    assert {(where, metric) for where, metric in named if metric not in there} == set()


def test_runbook_covers_exactly_the_alerts() -> None:
    pages = (ROOT / "docs/how-to/alerts.md").read_text()
    rules = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]

    for rule in rules:
        assert rule["annotations"]["runbook"] == f"docs/how-to/alerts.md#{rule['alert'].lower()}"
        assert f"## {rule['alert']}\n" in pages
    assert len(rules) == len({rule["alert"] for rule in rules}) == pages.count("\n## Strandline")


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="no promtool here: expressions are only compared by names",
)
def test_alerts_fire_when_they_should() -> None:
    for command in (
        ["check", "rules", "alerts.yml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "alerts_test.yml"],
    ):
        told = subprocess.run(
            ["promtool", *command],
            cwd=DEPLOY / "prometheus",
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr


def test_release_signs_the_tested_wheels() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]

    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "test": "build",
        "sign": "test",
    }
    built = [name for name, job in jobs.items() if "make wheels" in json.dumps(job)]
    may_write = [name for name, job in jobs.items() if "write" in job["permissions"].values()]
    assert (built, may_write) == (["build"], ["sign"])
    (suite,) = [step for step in jobs["test"]["steps"] if step.get("run") == "bash .ci/run"]
    assert suite["env"] == {
        "STRANDLINE_WHEELS": "${{ github.workspace }}/dist"
    }  # read by tests/package/test_wheels.py
