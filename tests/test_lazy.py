"""Faces whose parts are imported when they are first named."""
from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xlamini
import xlamini.numpy as jnp


@pytest.mark.parametrize("face", [xlamini, jnp, xlamini.lax, xlamini.scipy, xlamini.nn])
def test_all_that_a_face_names_is_there(face: ModuleType) -> None:
    for name in dir(face):
        assert getattr(face, name) is not None or name == "newaxis" or name.startswith("_")
    with pytest.raises(AttributeError, match=f"module '{face.__name__}' has no attribute 'nothing'"):
        _ = face.nothing


@pytest.mark.parametrize("face", [xlamini, jnp, xlamini.lax, xlamini.scipy, xlamini.nn])
def test_no_function_hides_behind_a_module_of_its_name(face: ModuleType) -> None:
    """Importing the module would put it in the function's place."""
    modules = {path.stem for path in Path(str(face.__file__)).parent.iterdir()}
    assert not modules & set(getattr(face, "_MEMBERS", {}))


def imported_for_types(face: ModuleType) -> set[str]:
    """The names in the imports under `if TYPE_CHECKING`."""
    (block,) = (node for node in ast.parse(inspect.getsource(face)).body if isinstance(node, ast.If))
    return {name.name for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for name in node.names}


def test_type_checkers_see_what_is_imported_later() -> None:
    assert imported_for_types(jnp) == set(jnp._MEMBERS)
    assert imported_for_types(xlamini.nn) == {*xlamini.nn._MEMBERS, "initializers"}
    assert imported_for_types(xlamini) >= set(xlamini._MEMBERS) - {"remat", "P"}


def test_star_import_has_every_function() -> None:
    namespace: dict = {}
    exec("from xlamini.numpy import *", namespace)
    assert {"sin", "unique", "add", "take", "einsum", "pi", "fft"} <= set(namespace)
    assert all(callable(namespace[name]) for name in ("take", "einsum", "vectorize", "cross"))


def test_methods_are_those_of_the_families() -> None:
    x = jnp.arange(6.0)
    assert x.sum() == 15 and x.conj()[1] == 1 and x.flatten().shape == (6,)
    assert x.compress(x > 3).shape == (2,) and int(xlamini.jit(lambda x: x.argmax())(x)) == 5
    assert type(x).cumsum.__name__ == "cumsum" and "running sum" in type(x).cumsum.__doc__


def test_starting_imports_no_loops_and_no_compiler() -> None:
    code = (
        "import sys, gc, xlamini, xlamini.numpy; "
        "lazy = ('xlamini.transforms.scan', 'xlamini.transforms.while_loop', 'jaxlib.mlir.ir'); "
        "print([m for m in sys.modules if m.startswith(lazy)], "
        "gc.isenabled())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[] True"
