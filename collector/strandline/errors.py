"""Every error that Strandline raises on purpose, as one tree.

A message names the thing, the reason and the place.

    StrandlineError
    ├── SettingsError            faults of settings, all at once
    ├── InvalidEventError        not an OpenLineage event; never retried
    │   └── NotJsonError         not even JSON
    ├── BodyError                a body that cannot be read
    │   └── TooLargeError        a body beyond a limit
    ├── RequestError             a head that can be read in two ways
    ├── ParameterError           a parameter that is missing or cannot be read
    ├── QuestionError            parameters that contradict each other
    ├── NotFoundError            nothing has this name
    │   └── AmbiguousError       several things have it
    ├── RefusedError             understood and declined; nothing changed
    ├── UnauthorizedError        no key, or not one of ours
    ├── ForbiddenError           a key that is not for this
    ├── MediaTypeError           a body of another type than JSON
    ├── SchemaError              a database of another version
    ├── DamagedError             stored data that is not what was written
    ├── WaitedError              the time to wait is over
    ├── OverloadError            too much waits; try again later
    ├── StoppedError             a question that was stopped
    ├── RateError                a key that asks too often
    ├── FencedError              another consumer owns the partition
    ├── TooManyDeadLettersError  the consumer stops: wrong topic, most likely
    ├── KeySetError              no set of public keys
    ├── CollectorError           a running collector did not answer a command
    ├── UnavailableError         a target took nothing; tried again later
    ├── RefusedItemError         a target declined an item for good
    ├── OtherDeliveryError       another process delivers to the target
    ├── ImportFaultError         the catalog that is imported from does not answer
    └── DemoError                a part of the demo did not do its work
"""

from collections.abc import Sequence


class StrandlineError(Exception):
    """Root of the tree: `except StrandlineError` catches all that one line can explain."""

    code = "error"


class SettingsError(StrandlineError):
    """All faults of the settings at once, each naming setting, value and reason."""

    code = "settings"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class InvalidEventError(StrandlineError):
    """Not an OpenLineage event.

    `path` leads to the fault inside the document ("" for the whole).
    """

    code = "invalid_event"

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(
            f"not an OpenLineage event: {path}: {reason}"
            if path
            else f"not an OpenLineage event: {reason}"
        )
        self.reason = reason
        self.path = path


class NotJsonError(InvalidEventError):
    """An event that is no JSON at all: over HTTP 400, where what is no event is 422."""

    code = "invalid_body"


class BodyError(StrandlineError):
    """A request's body cannot be read: not gzip though it says so, not JSON, not an array."""

    code = "invalid_body"


class TooLargeError(BodyError):
    """A request's body passes a limit, before or after decompression."""

    code = "too_large"


class RequestError(StrandlineError):
    """A request's head cannot be read in one way only."""

    code = "invalid_request"


class ParameterError(StrandlineError):
    """A request's parameter is missing or cannot be read."""

    code = "invalid_parameter"


class QuestionError(StrandlineError):
    """Parameters of a question, each of them right, that contradict each other."""

    code = "invalid_parameter"


class NotFoundError(StrandlineError):
    """The name is unknown; `candidates` lists similar ones."""

    code = "not_found"

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class AmbiguousError(NotFoundError):
    """Several things are called what was asked for; `candidates` lists them."""

    code = "ambiguous"


class RefusedError(StrandlineError):
    """Declined with a reason and without any change.

    `code` says which kind (no_version, untracked, lag, ...).
    """

    def __init__(self, message: str, code: str = "refused") -> None:
        super().__init__(message)
        self.code = code


class UnauthorizedError(StrandlineError):
    """No API key was sent, or one that is not valid (any more)."""

    code = "unauthorized"


class ForbiddenError(StrandlineError):
    """The key is valid and not for this: another scope is needed, or another namespace."""

    code = "forbidden"


class MediaTypeError(StrandlineError):
    """A body of another type than JSON: a browser sends such ones for any page without asking."""

    code = "media_type"


class SchemaError(StrandlineError):
    """The database has another schema than this program needs, or none."""

    code = "schema"


class DamagedError(StrandlineError):
    """The stored data is damaged or missing: the message names it.

    The rest can be read.
    """

    code = "damaged"


class WaitedError(StrandlineError):
    """The wait ended without the expected event."""

    code = "waited"


class OverloadError(StrandlineError):
    """As much waits as may wait; the sender may try again after `retry_after` seconds."""

    code = "overload"

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoppedError(StrandlineError):
    """A question was stopped: its time was over, its client has gone, or the server ends."""

    code = "stopped"


class RateError(StrandlineError):
    """A key asked more often than the settings allow.

    It may ask again after `retry_after` seconds.
    """

    code = "rate"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class FencedError(StrandlineError):
    """Another consumer moved the offset of a partition.

    This one's claim is over, and its caches are stale.
    """

    code = "fenced"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"another consumer owns {topic}[{partition}] now")
        self.topic = topic
        self.partition = partition


class TooManyDeadLettersError(StrandlineError):
    """More invalid records than the limits allow: rather stop than set a whole topic aside."""

    code = "too_many_dead_letters"


class KeySetError(StrandlineError):
    """The data read is no set of public keys."""

    code = "key_set"


class CollectorError(StrandlineError):
    """A running collector could not be asked, or refused to answer."""

    code = "collector"


class UnavailableError(StrandlineError):
    """The target took nothing; the same is tried again later.

    `doubtful`: it answered with a fault of its own. If it takes other items meanwhile, this one is
    to blame.
    """

    code = "unavailable"

    def __init__(
        self, reason: str, retry_after: float | None = None, *, doubtful: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.doubtful = doubtful


class RefusedItemError(StrandlineError):
    """The target declined this item for good; it is parked with the reason, and others go on."""

    code = "refused_item"


class OtherDeliveryError(StrandlineError):
    """Another process delivers to the target now."""

    code = "other_delivery"


class ImportFaultError(StrandlineError):
    """The catalog that is imported from does not answer, or not as it should."""

    code = "import"


class DemoError(StrandlineError):
    """A part of the demo did not do its work; the message holds the last lines of its log."""

    code = "demo"
