"""Numbers of random histories in a test.

60 by `make test`, 500 by `make test-all`, 10,000 by `make soak`.
"""

import pytest

SEEDS = [
    pytest.param(range(60), id="60 histories"),
    pytest.param(range(60, 500), id="500 histories", marks=pytest.mark.slow),
    pytest.param(range(10_000), id="10,000 histories", marks=pytest.mark.soak),
]
each_size = pytest.mark.parametrize("seeds", SEEDS)
