"""Looking for words finds what trying a pattern at every place does, in less work."""

import random
import re

import pytest

from rules.test_redaction_rules import work
from strandline.core.redaction.rules.addresses import hide_in_addresses
from strandline.core.redaction.rules.calls import CALLS_BY_WORD, LISTS_BY_WORD
from strandline.core.redaction.rules.hide import hide
from strandline.core.redaction.rules.names import MENTIONS_BY_WORD
from strandline.core.redaction.rules.places import FEW, Words, in_one_case
from strandline.core.redaction.rules.tokens import BY_BEGINNING
from worlds.canaries import canaries
from worlds.ordinary_sql import ordinary

GONE = "[redacted]"
PIECES = (
    *(
        "pass",
        "Pass",
        "dbPass",
        "PWD",
        "token",
        "max_tokens",
        "Secret",
        "key",
        "api key",
        "encryption-key",
        "sas",
        "auth",
    ),
    *("with (", "TBLPROPERTIES(", "serdeproperties =(", "options(", "hmac(", "pgp_sym_encrypt(", "encode_with_key("),
    *(
        "ghp_",
        "AKIA",
        "st_",
        "sk-",
        "eyJ",
        "Bearer ",
        "aB3dE6gH9jK2mN5pQ8rS1tU4",
        "\u017f",
        "\u212a",
        "é",
        "\n",
        " ",
        "=",
        "'",
    ),
)
BY_WORDS = {"mentions": MENTIONS_BY_WORD, "lists": LISTS_BY_WORD, "calls": CALLS_BY_WORD, "tokens": BY_BEGINNING}


def texts() -> list[str]:
    """Canaries, ordinary SQL, and both cut and mixed with what they are made of; long enough that words are few."""
    chance = random.Random(25)
    whole = [canary.text for canary in canaries()] + ordinary()
    found = list(whole)
    for _ in range(1500):
        parts = [chance.choice(whole)[: chance.randint(20, 200)], *chance.choices(PIECES, k=chance.randint(1, 8))]
        chance.shuffle(parts)
        found.append(("." * (FEW * 8)).join(parts))
    return found


@pytest.mark.parametrize("name", BY_WORDS)
def test_what_words_find_is_what_the_pattern_finds(name: str) -> None:
    words = BY_WORDS[name]
    different, count = [], 0
    for text in texts():
        seen = text if name == "tokens" else in_one_case(text)
        wanted = [found.span() for found in words.pattern.finditer(text)]
        count += len(wanted)
        if spans(words, text, seen) != wanted:
            different.append(text)

    assert different == []
    assert count > 20


def spans(words: Words, text: str, seen: str) -> list[tuple[int, int]]:
    """All that is found, one after the other."""
    search, at, found = words.searching(text, seen), 0, []
    while match := search(at):
        found.append(match.span())
        at = match.end()
    return found


def test_a_text_full_of_words_is_read_by_the_pattern() -> None:
    words = Words(re.compile("a[b-]"), {"b": 1, "-": 1})

    assert [spans(words, text, text) for text in ("ab" * 3, "ab" + "." * 400 + "a-")] == [
        [(0, 2), (2, 4), (4, 6)],
        [(0, 2), (402, 404)],
    ]


def test_addresses_that_are_places_cost_nothing_each() -> None:
    assert work("SELECT 'https://host:8080/path' " * 20_000) < 2_000
    assert (
        hide_in_addresses("a://h:80/b?x=y c://webhook.io/t d://u:p@h/b", GONE) == "a://h:80/b c://webhook.io/t d://h/b"
    )


def test_a_token_is_known_whatever_else_the_text_has() -> None:
    assert hide("push github_pat_11ABCDEFG_0123456789abcde now", GONE) == "push [redacted] now"
