"""How many random histories a test plays: some hundred in the suite, ten thousand by `make soak`."""

import pytest

SEEDS = [
    pytest.param(range(250), id="250 histories"),
    pytest.param(range(10_000), id="10,000 histories", marks=pytest.mark.soak),
]
each_size = pytest.mark.parametrize("seeds", SEEDS)
