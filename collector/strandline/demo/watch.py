"""Looks after the demo's processes: what fails ends the demo, what somebody kills does not.

A collector that was killed is started again, as a supervisor would. A killed driver stays away
while the demo is kept up, so that its heartbeat timeout can be seen to run out.
"""

from collections.abc import Callable

from strandline.demo import report as demo_report
from strandline.demo.processes import DemoProcess, Processes


class Watch:
    """Looks at all processes, as often as one likes."""

    def __init__(
        self,
        started: Processes,
        start_collector: Callable[[], DemoProcess],
        lease_seconds: int | None,
    ) -> None:
        """Watch these processes.

        `lease_seconds` is the lease of drivers that may be killed; None: a killed one ends all.
        """
        self._started = started
        self._start_collector = start_collector
        self._lease_seconds = lease_seconds
        self._given_up: list[DemoProcess] = []

    def look(self) -> None:
        """Raise DemoError when a process has failed."""
        for part in [part for part in self._started.parts if part not in self._given_up]:
            if not part.killed:
                part.check()
            elif part.name == "collector":
                self._given_up.append(part)
                demo_report.say("the collector was killed; it is started again")
                self._start_collector()
            elif self._lease_seconds is not None:
                self._given_up.append(part)
                demo_report.say(
                    f"{part.name} was killed: LOST in {self._lease_seconds} s, "
                    "when its heartbeat timeout is over"
                )
            else:
                part.check()
