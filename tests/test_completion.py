"""What completion shows after a dot: the public names, those too that are not loaded yet, and none of the inside."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import xlamini
from docs.builder.names import public_modules

MODULES = {name: module for name, module in public_modules().items() if hasattr(module, "__all__")}
PROGRAM = """
import json, rlcompleter, xlamini
text, i, found = "xlamini.numpy.", 0, []
complete = rlcompleter.Completer({"xlamini": xlamini}).complete
while (match := complete(text, i)) is not None:
    i += 1
    found.append(match.removeprefix(text).rstrip("()"))
print(json.dumps(found))
"""
"""In a new process no lazy name has been loaded."""


@pytest.mark.parametrize("name", MODULES)
def test_public_names_alone_are_shown(name: str) -> None:
    module = MODULES[name]
    shown = {n for n in dir(module) if not n.startswith("_")}
    public = {n for n in module.__all__ if not n.startswith("_")}
    assert public <= shown
    assert [n for n in shown - public if not _is_public_elsewhere(module, n)] == []


def _is_public_elsewhere(module: object, name: str) -> bool:
    """Whether a name that `from module import *` leaves out is a name of the face, such as a type for annotations."""
    return getattr(module, "__name__", "") == "xlamini.typing" and name in ("AxisLike", "ShapeLike", "SupportsDType")


@pytest.mark.slow
def test_names_complete_before_they_are_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    found = set(json.loads(done.stdout))
    assert found == {name for name in xlamini.numpy.__all__ if not name.startswith("_")}
    assert {"linalg", "linspace", "einsum", "fft"} <= found


def test_a_misspelled_name_has_advice() -> None:
    with pytest.raises(AttributeError, match="did you mean arange or average"):
        _ = xlamini.numpy.arrange  # pyright: ignore
    with pytest.raises(AttributeError, match="did you mean vmap or smap"):
        _ = xlamini.vmapp  # pyright: ignore
