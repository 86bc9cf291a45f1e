"""Text of producers without what would steer a terminal: escape codes, bells, line breaks."""

import re
from typing import Any

# Control characters, line separators, and signs that turn the direction of what follows.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_STEERING_IN_LINES = re.compile(rf"(?!\n){_STEERING.pattern}")


def escaped(text: str) -> str:
    r"""Return one line of text, with signs that steer a terminal as Python writes them.

    >>> escaped("red \x1b[31m, a bell \a, a line\nbreak")
    'red \\x1b[31m, a bell \\x07, a line\\nbreak'
    """
    return _STEERING.sub(_written, text)


def escaped_lines(text: str) -> str:
    r"""Return several lines of text, whose own line breaks stay.

    >>> escaped_lines("a\n\x1b[2J")
    'a\n\\x1b[2J'
    """
    return _STEERING_IN_LINES.sub(_written, text)


def escaped_answer(answer: Any) -> Any:
    """Return an answer as JSON has it, with all its strings escaped."""
    match answer:
        case str():
            return escaped(answer)
        case dict():
            return {escaped(name): escaped_answer(value) for name, value in answer.items()}
        case list():
            return [escaped_answer(value) for value in answer]
    return answer


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
