"""In which format an answer goes out.

By the parameter `format`, else by the Accept header, else JSON.

A format without room for it says in headers what the answer left out (`Strandline-Complete`,
`Strandline-Truncated-By`), and of a list where the next page is (`Link`).
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from strandline.core.exports.graphs import WRITERS
from strandline.core.exports.lists import list_csv

JSON = "json"
CSV = "text/csv; charset=utf-8"
FORMATS: Mapping[str, tuple[str, ...]] = {"list": (JSON, "csv"), "graph": (JSON, *WRITERS)}
"""What each kind of answer can be had as."""

MEDIA: Mapping[str, str] = {name: media for name, (media, _) in WRITERS.items()} | {"csv": CSV}


def format_of(request: Request, kind: str, requested: str | None) -> str:
    """Return the format that a request asks for."""
    if requested is not None:
        return requested
    wanted = [_weighed(part) for part in request.headers.get("accept", "").split(",")]
    for _, media in sorted(wanted, key=lambda pair: -pair[0]):
        for name in FORMATS[kind]:
            if media == (media_of(name).partition(";")[0]):
                return name
    return JSON


def media_of(name: str) -> str:
    """Return the media type of a format."""
    return MEDIA.get(name, "application/json")


def _weighed(part: str) -> tuple[float, str]:
    media, _, parameters = part.strip().lower().partition(";")
    _, _, weight = parameters.replace(" ", "").partition("q=")
    try:
        return float(weight or 1), media.strip()
    except ValueError:
        return 0.0, media.strip()


def exported(
    request: Request, path: str, name: str, answer: Mapping[str, Any], columns: tuple[str, ...]
) -> Response:
    """Return the answer of a path in a format other than JSON.

    `columns` are those that items of a list always have.

    path: as it is declared, with the names of its parameters.
    """
    if "edges" in answer:
        text = WRITERS[name][1](answer)
    else:
        path = path.format_map(request.path_params)
        text = list_csv(
            path, next((rows for rows in answer.values() if isinstance(rows, list)), []), columns
        )
    return Response(text, media_type=media_of(name), headers=_told_apart(request, answer))


def _told_apart(request: Request, answer: Mapping[str, Any]) -> dict[str, str]:
    headers = {}
    if "complete" in answer:
        headers["Strandline-Complete"] = "true" if answer["complete"] else "false"
    if answer.get("truncatedBy"):
        headers["Strandline-Truncated-By"] = str(answer["truncatedBy"])
    for what, number in (answer.get("hidden") or {}).items():
        headers[f"Strandline-Hidden-{what.title()}"] = str(number)
    if answer.get("withheld"):
        headers["Strandline-Withheld"] = ", ".join(answer["withheld"])
    if cursor := answer.get("nextCursor"):
        pairs = [
            (name, value) for name, value in request.query_params.multi_items() if name != "cursor"
        ]
        query = "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}"
            for name, value in [*pairs, ("cursor", cursor)]
        )
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return headers
