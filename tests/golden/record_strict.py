"""Record which of expressions/*.txt JAX refuses in its strict modes of promotion: `python record_strict.py`, with JAX.

Nothing is computed: an expression is traced, or, if it reads values, evaluated.
"""
from __future__ import annotations

import json
import sys
import warnings
from contextlib import AbstractContextManager

import jax
from expressions import FILES, FOLDER, expressions, names, needs_x64
from strict import MODES, refuses

TARGET = FOLDER.parent / "strict.json"


def refused(file: str, mode: str) -> list[str]:
    """The expressions of a file that JAX takes, but not in this mode."""
    jax.config.update("jax_enable_x64", needs_x64(file))
    known = names(jax, file)

    def within() -> AbstractContextManager[None]:
        return getattr(jax, f"numpy_{mode}_promotion")(MODES[mode])

    return [each.text for each in expressions(file) if refuses(jax, each.text, known, within)]


def main() -> None:
    warnings.simplefilter("ignore")
    found = {mode: {file: refused(file, mode) for file in sys.argv[1:] or FILES} for mode in MODES}
    TARGET.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
