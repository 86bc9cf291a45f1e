"""Options that several commands have, and the types of their arguments."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from strandline.core.exports.formats import GRAPH_FORMATS
from strandline.core.openlineage.moments import moment
from strandline.questions import declared
from strandline.questions.declared import Parameter

if TYPE_CHECKING:
    from pathlib import Path

MOST_ITEMS = 100_000  # of a list


def name_argument(text: str) -> str:
    """Return the argument that names something.

    An empty one (a variable that is not set) names nothing.
    """
    if not text:
        raise ArgumentTypeError("is empty")
    return text


def path_argument(text: str) -> "Path":
    """Return the path of a file or folder."""
    from pathlib import Path  # a third of what `strandline --help` would import

    return Path(text)


def number(low: int, high: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ArgumentTypeError(f"{text} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def time_argument(text: str) -> datetime:
    """Return the moment that an argument is, of the calendar or counted from now."""
    try:
        return moment(text, datetime.now(UTC))
    except ValueError as error:
        raise ArgumentTypeError(f"{text} {error}") from None


def add_list_output(parser: ArgumentParser, as_json: str = "the answer as JSON") -> None:
    """Add --json, --csv and --format to a command that prints a list."""
    parser.add_argument("--json", action="store_const", dest="format", const="json", help=as_json)
    parser.add_argument(
        "--csv", action="store_const", dest="format", const="csv", help="the answer as CSV"
    )
    parser.add_argument("--format", choices=("json", "csv"), help="the answer in this format")


def add_collector_arguments(parser: ArgumentParser, default: str | None = None) -> None:
    """Add --url and --key.

    default: SUPPRESS for an action below a command that has them, too.
    """
    parser.add_argument(
        "--url",
        type=_address,
        default=default,
        help="ask a running collector, e.g. http://127.0.0.1:5000, instead of the database; or "
        "STRANDLINE_URL",
    )
    parser.add_argument(
        "--key",
        default=default,
        help="with --url: the key of an API that asks for one; or STRANDLINE_KEY, "
        "STRANDLINE_KEY_FILE",
    )


def _address(text: str) -> str:
    from strandline.setting_parsers import web_address  # most commands have no address

    try:
        web_address(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not an address like http://127.0.0.1:5000") from None
    return text


def _moment(text: str) -> str:
    return time_argument(text).isoformat()


def _facet(text: str) -> str:
    from strandline.store.questions.selection import facet_value  # the help needs no store

    try:
        facet_value(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text} {error}") from None
    return text


def add_parameter(parser: ArgumentParser, flag: str, parameter: Parameter, **options: Any) -> None:
    """Add the option of a parameter that the API has, too."""
    default = options.get("default")
    about = f"{parameter.about} (default: {default})" if default else parameter.about
    if parameter.values:
        options["choices"] = parameter.values
    elif parameter.high:
        options["type"] = number(parameter.low, parameter.high)
    parser.add_argument(flag, help=about, **options)


def add_as_of(parser: ArgumentParser) -> None:
    """Add --as-of."""
    add_parameter(parser, "--as-of", declared.AS_OF, type=_moment, metavar="TIME")


def add_span(parser: ArgumentParser) -> None:
    """Add --since and --until."""
    add_parameter(parser, "--since", declared.SINCE, type=time_argument, metavar="TIME")
    add_parameter(parser, "--until", declared.UNTIL, type=time_argument, metavar="TIME")


def add_state(parser: ArgumentParser) -> None:
    """Add --state."""
    add_parameter(parser, "--state", declared.EDGE_STATE, default="recent")


def add_view(parser: ArgumentParser) -> None:
    """Add --as-of and --state."""
    add_as_of(parser)
    add_state(parser)


def add_selection(parser: ArgumentParser) -> None:
    """Add --namespace, --kind, --tag and --facet: each may be given several times."""
    add_parameter(parser, "--namespace", declared.SHOWN_NAMESPACE, action="append")
    add_parameter(parser, "--kind", declared.SHOWN_KIND, action="append")
    add_parameter(parser, "--tag", declared.SHOWN_TAG, action="append")
    add_parameter(
        parser,
        "--facet",
        declared.SHOWN_FACET,
        action="append",
        type=_facet,
        metavar="KEY.FIELD=VALUE",
    )


def add_output(parser: ArgumentParser, kind: str) -> None:
    """Add --json, --csv, --format, --url and --key."""
    formats = ("json", "csv") if kind == "list" else GRAPH_FORMATS
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    parser.add_argument(
        "--csv", action="store_const", dest="format", const="csv", help="the answer as CSV"
    )
    parser.add_argument("--format", choices=formats, help="the answer in this format")
    add_collector_arguments(parser)
    parser.set_defaults(format=None)


def add_catalog_properties(parser: ArgumentParser) -> None:
    """Add the options for catalogs."""
    parser.add_argument(
        "--catalog-property",
        action="append",
        default=[],
        metavar="CATALOG.KEY=VALUE",
        help="of a catalog, as pyiceberg names them: lake.uri=...; besides pyiceberg's own "
        "configuration",
    )


def add_spark_options(parser: ArgumentParser) -> None:
    """Add the options for Spark."""
    parser.add_argument(
        "--master", default="local[*]", help="Spark's master (default: %(default)s)"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="of Spark; may be repeated"
    )
