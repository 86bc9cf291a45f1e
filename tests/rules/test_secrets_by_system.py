"""Messages of many systems lose their secret in every place, and statements stay as they are."""

from collections.abc import Callable
from typing import Any

import pytest

from strandline.core.redaction.json import is_suspicious, redact_bytes, redact_json
from strandline.core.redaction.text import redact_text
from strandline_spark.openlineage.redaction import clean_text
from worlds import texts_by_line
from worlds.builders import encode
from worlds.secrets_by_system import MESSAGES, STATEMENTS

SECRET = "Vq7xK2mPz9LwT4"
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "message": lambda text: {"message": text},
    "stack trace": lambda text: {"message": f"Job failed\n\tat a.B(C:1)\nCaused by: {text}\n\tat"},
    "log": lambda text: {"log": f"26/11/29 17:00:00 ERROR Executor: Exception in task 0: {text}"},
    "literal": lambda text: {
        "query": f"INSERT INTO t SELECT '{text.replace(chr(39), chr(39) * 2)}'"
    },
    "comment": lambda text: {"query": f"SELECT a FROM t /* {text} */ WHERE b = 'c'"},
    "list": lambda text: {"arguments": ["a", text, "b"]},
    "name": lambda text: {text: 1},
}


@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
def test_no_place_keeps_the_secret_of_a_message(messages: tuple[str, ...]) -> None:
    texts = [text.replace("$SECRET", SECRET) for text in messages]
    documents = [encode(place(text)) for text in texts for place in PLACES.values()]
    redacted = [redact_json("custom", document) for document in documents]

    assert [text for text in texts if SECRET in redact_text(text)] == []
    assert [text for text in texts if SECRET in clean_text(text)] == []
    assert [document for document in redacted if SECRET.encode() in document] == []
    assert [document for document in redacted if redact_json("custom", document) != document] == []
    assert [document for document in documents if not is_suspicious("custom", document)] == []


def test_no_place_changes_a_statement() -> None:
    failed = "cannot resolve column\n== SQL ==\n{}\n^^^"
    documents = [
        encode(document)
        for text in STATEMENTS
        for document in ({"query": text}, {"message": failed.format(text)}, {"x": [text]})
    ]

    assert [document for document in documents if redact_json("sql", document) != document] == []


def test_lines_of_many_styles_lose_their_secret_and_others_stay() -> None:
    lines = [line.replace("$SECRET", SECRET) for line in texts_by_line.SECRET]
    documents = [encode({"x": line}) for line in lines]

    assert len(lines) > 450
    assert len(texts_by_line.PLAIN) > 450
    assert [line for line in lines if SECRET.encode() in redact_bytes(line.encode())] == []
    assert [line for line in documents if not is_suspicious("custom", line)] == []
    assert [
        line for line in texts_by_line.PLAIN if redact_bytes(line.encode()) != line.encode()
    ] == []
