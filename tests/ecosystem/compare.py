"""Run a library's programs over xlamini: `python -m tests.ecosystem.compare NAME`, in the environment without JAX."""
from __future__ import annotations

import sys

import xlamini.as_jax
from tests.ecosystem.outcomes import differences


def main() -> None:
    import jax

    assert jax.__xlamini__ == xlamini.__version__
    found = [line for library in sys.argv[1:] for line in differences(library)]
    sys.exit("\n".join(found) or None)  # an empty text would be a failure


if __name__ == "__main__":
    main()
