"""Programs of the libraries of JAX's ecosystem, unmodified, give over xlamini the values that they give over JAX."""
from __future__ import annotations

import subprocess

import pytest

from tests.ecosystem import environment
from tests.ecosystem.outcomes import LIBRARIES
from tests.support.paths import ROOT

needs_environment = pytest.mark.skipif(
    not environment.python().exists(), reason="no environment: python -m tests.ecosystem.environment makes it"
)


@needs_environment
@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_gives_the_values_of_jax(library: str) -> None:
    command = [environment.python(), "-m", "tests.ecosystem.compare", library]
    variables = {**environment.variables(), "XLAMINI_DISABLE_MOST_OPTIMIZATIONS": "0"}  # JAX had all of them
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
