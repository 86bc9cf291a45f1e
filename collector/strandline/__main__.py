"""`python -m strandline`: the command, where its script is not on PATH."""

from strandline.cli import run

run()
