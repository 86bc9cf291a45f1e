"""`python -m strandline.cli` is the command `strandline`."""

from strandline.cli import run

run()
