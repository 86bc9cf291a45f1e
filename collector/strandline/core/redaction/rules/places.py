"""Where in a text a pattern may match.

Looking for words that each match has costs a tenth of trying it at every place.

What is found is what the pattern itself would find, for a match begins at a word or a few
characters before it. A text that has such words nearly everywhere is given to the pattern.
"""

import re
from collections.abc import Callable, Iterator, Mapping

FEW = 40  # characters of a text for each word that is looked at

Search = Callable[[int], "re.Match[str] | None"]


def in_one_case(text: str) -> str:
    """The text in lower case, a `?` for each character that is not ASCII.

    Every character stays in its place.

    >>> in_one_case("PASSWORT für ALLE")
    'passwort f?r alle'
    """
    return (text if text.isascii() else text.encode("ascii", "replace").decode("ascii")).lower()


class Words:
    """A pattern, and words one of which is in each of its matches.

    Each with how far behind their start it may begin.
    """

    def __init__(self, pattern: "re.Pattern[str]", words: Mapping[str, int]) -> None:
        self.pattern = pattern
        self._words = dict(words)

    def searching(self, text: str, seen: str) -> Search:
        """Gives the first match from a place on; to be asked for places in their order.

        `seen`: the text as the words are.
        """
        present = [word for word in self._words if word in seen]  # of most texts none
        if sum(map(seen.count, present)) * FEW > len(text):
            return lambda at: self.pattern.search(text, at)
        places = iter(sorted({place for word in present for place in self._around(seen, word)}))

        def search(at: int) -> "re.Match[str] | None":
            for place in places:
                if place >= at and (found := self.pattern.match(text, place)):
                    return found
            return None

        return search

    def _around(self, seen: str, word: str) -> Iterator[int]:
        """The places at which a match with this word may begin."""
        before, place = self._words[word], seen.find(word)
        while place >= 0:
            yield from range(max(0, place - before), place + 1)
            place = seen.find(word, place + 1)
