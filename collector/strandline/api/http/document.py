"""The OpenAPI document of the routes, which FastAPI makes, and the page /docs made of it."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from fastapi.openapi.utils import get_openapi

from strandline import __version__
from strandline.api.http.route import Route

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}
STYLE = (
    "body{font:15px/1.5 system-ui;max-width:60em;margin:2em auto;padding:0 1em}"
    "code{background:#8882}dt{margin-top:1em}"
)
Operation = dict[str, Any]


def openapi_of(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    document = get_openapi(
        title="Strandline", version=__version__, routes=routes, separate_input_output_schemas=False
    )
    declared = {
        (route.path_format, method.lower()): route
        for route in routes
        for method in route.methods or ()
    }
    for path, method, operation in _operations(document):
        _tidy(operation, declared[path, method])
        operation["operationId"] = "_".join([method, *re.findall(r"\w+", path)])
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, schema in schemas.items():
        _without_titles(schema)
        schema["title"] = name  # client generators name their classes so: no two are one
    schemas["Problem"] = PROBLEM
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return document


def _without_titles(schema: Any) -> None:
    """Drop the titles that are made of names which stand beside them."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for part in schema.values():
            _without_titles(part)
    elif isinstance(schema, list):
        for part in schema:
            _without_titles(part)


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _tidy(operation: Operation, route: Route) -> None:
    """Say the scope and examples; leave out FastAPI's refusal and null for parameters."""
    scope = route.permission.scope
    fields = route.query.model_fields.items() if route.query is not None else ()
    examples = {field.alias or name: field.examples for name, field in fields}
    operation.pop("description", None)
    operation["security"] = [{}] if scope == "open" else [{}, {"key": [scope]}]
    refusal = operation["responses"].get("422", {}).get("content", {})
    if "application/json" in refusal:
        del operation["responses"]["422"]
    _without_titles(operation["responses"])
    for parameter in operation.setdefault("parameters", []):
        schema = parameter["schema"]
        for option in schema.pop("anyOf", ()):
            if option != {"type": "null"}:
                schema.update(option)
        # None and an empty set stand for nothing; a client would send what the document says.
        if schema.get("default", 0) is None or (
            schema.get("default") == [] and schema["type"] == "string"
        ):
            del schema["default"]
        schema.pop("title", None)
        if example := examples.get(parameter["name"]):
            parameter["example"] = example[0]


def docs_page(document: Mapping[str, Any]) -> str:
    """Return a page for people; it needs no script and nothing from elsewhere."""
    entries = "".join(
        _entry(path, method, operation)
        for path, method, operation in sorted(_operations(document), key=lambda pair: pair[0])
    )
    head = f'<meta charset="utf-8"><title>Strandline API</title><style>{STYLE}</style>'
    intro = (
        f"<h1>Strandline {__version__}</h1>"
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>'
    )
    return (
        "<!doctype html><html lang=en>"
        f"<head>{head}</head><body>{intro}<dl>{entries}</dl></body></html>"
    )


def docs_headers() -> dict[str, str]:
    """Return the policy of the page: a browser may only show it in its own style."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action "
        "'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


def _entry(path: str, method: str, operation: Operation) -> str:
    rows = "".join(
        f"<li><code>{escape(parameter['name'])}</code>"
        f"{' (required)' if parameter.get('required') else ''}: "
        f"{escape(parameter.get('description', ''))}</li>"
        for parameter in operation["parameters"]
    )
    scope = operation["security"][-1].get("key", ["open"])[0]
    title = f"<code>{method.upper()} {escape(path)}</code> (scope {scope})"
    about = escape(operation["summary"])
    link = _example_link(path, method, operation)
    return f"<dt>{title}</dt><dd>{about}{link}<ul>{rows}</ul></dd>"


def _example_link(path: str, method: str, operation: Operation) -> str:
    """Return a link to a question with the examples of its required parameters, or nothing."""
    if method != "get" or "{" in path:
        return ""
    examples = {
        parameter["name"]: parameter.get("example")
        for parameter in operation["parameters"]
        if parameter.get("required")
    }
    if not examples or None in examples.values():
        return ""
    address = f"{path}?{urlencode(examples, doseq=True)}"
    return f'<p><a href="{escape(address.lstrip("/"))}"><code>{escape(address)}</code></a></p>'
