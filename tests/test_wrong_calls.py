"""Wrong values of each parameter of each public function: the errors are short, and name a function or a parameter.

Each call is made with --all-rows, else one in sixty; `tests/support/wrong_calls.py` compares all of them with JAX.
"""

from __future__ import annotations

import functools
import re
import warnings

import pytest

from tests.support.tiers import ALL, tier_of
from tests.support.wrong_calls import FACES, Library, calls

UNNAMED = re.compile(
    r"UFunc\w*Error|Unable to allocate|is not a valid|truth value|no NumPy array|takes at most|(left|right)_shift does|"
    r"MemoryError|The int of a traced"
)
"""What NumPy, an enum, or a function of another name says of values that no function looks at first."""


@functools.cache
def library() -> Library:
    return Library("xlamini")


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
def test_errors_are_short_and_named(face: str, request: pytest.FixtureRequest) -> None:
    one_in = 1 if tier_of(request.config) == ALL else 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = list(calls(library(), face, False, one_in))
    wrong = [(call, kind, text[:300]) for call, kind, text in outcomes if kind not in ("result", "error", "no base")]
    assert [each for each in wrong if not UNNAMED.search(each[2])] == []


CALLS = {
    "no end": ("numpy", "sum", {"a": 1.0, "axis": "loop"}, "error"),
    "many": ("numpy", "zeros", {"shape": (2,), "dtype": "many"}, "error"),
    "objects": ("numpy", "add", {"x": 1.0, "y": "objects"}, "error"),
    "a device": ("numpy", "zeros", {"shape": (2,), "device": 2.0}, "error"),
    "a method": ("numpy", "searchsorted", {"a": "floats", "v": 1.0, "method": "text"}, "error"),
    "an index": ("numpy", "tril", {"m": "empty", "k": 1.5}, "error"),
    "a name": ("transformations", "default_device", {"val": 1.5}, "error"),
    "a result": ("numpy", "sum", {"a": "floats", "axis": -1}, "result"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_eager", [False, True])
def test_wrong_calls(name: str, is_eager: bool) -> None:
    face, function, given, wanted = CALLS[name]
    fun = library().functions(face).get(function, getattr(library().root, function, None))
    values = {k: library().wrong.get(v, v) if isinstance(v, str) else v for k, v in given.items()}
    if wanted == "result":
        library().run(fun, values, is_eager)
        return
    with pytest.raises((TypeError, ValueError, RecursionError), match=function) as found:
        library().run(fun, values, is_eager)
    assert len(str(found.value)) < 1000
