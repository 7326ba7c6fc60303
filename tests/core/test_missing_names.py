"""What is written for a name of another library: each suggestion evaluates, and no name of a table is there already."""
from __future__ import annotations

import pydoc
import re
import subprocess
import sys
import textwrap
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core.errors.other_names import ARRAY, MODULES

X = jnp.arange(1.0, 4.0)
VALUES: dict[str, Any] = {
    "xlamini": xlamini, "jnp": jnp, "np": np, "x": X, "y": X + 1, "z": jnp.eye(3), "f": lambda *x: x[0] * 2,
    "loss": jnp.sum,
}
OF_MODULES = [(module, name) for module, names in MODULES.items() for name in names]


def evaluated(text: str) -> Any:
    """The value of a suggestion, on the platform that every test has."""
    with xlamini.enable_x64("enable_x64" in text):
        return eval(text.partition("; ")[0].replace('devices("cuda")', 'devices("cpu")'), VALUES)


def test_the_tables_are_long() -> None:
    assert len(OF_MODULES) > 120 and len(ARRAY) > 70


@pytest.mark.parametrize(("module", "name"), OF_MODULES)
def test_names_of_modules(module: str, name: str) -> None:
    assert not hasattr(import_module(module), name)
    with pytest.raises(AttributeError) as caught:
        getattr(import_module(module), name)
    text = MODULES[module][name]
    assert str(caught.value) == f"module {module!r} has no attribute {name!r}; write {text}"
    assert caught.value.name == name
    assert evaluated(text) is not None


@pytest.mark.parametrize("name", ARRAY)
def test_methods_of_arrays(name: str) -> None:
    assert not hasattr(X, name) and name not in dir(X)
    text = f"'Array' object has no attribute {name!r}; write {ARRAY[name]}"
    with pytest.raises(AttributeError, match=re.escape(text)):
        getattr(X, name)
    assert evaluated(ARRAY[name]) is not None


@pytest.mark.parametrize("name", ["cuda", "numpy", "detach", "unsqueeze", "exp"])
def test_methods_of_traced_values(name: str) -> None:
    def asks(x: Any) -> Any:
        assert not hasattr(x, name) and name not in dir(x) and "sum" in dir(x)
        return getattr(x, name)()

    with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; write {ARRAY[name]}")):
        xlamini.jit(asks)(X)


NEAR = {
    "gard": ("xlamini", "did you mean grad"),
    "vmpa": ("xlamini", "did you mean vmap"),
    "aray": ("xlamini.numpy", "did you mean array"),
    "cnd": ("xlamini.lax", "did you mean cond"),
    "norml": ("xlamini.random", "did you mean normal"),
    "prnt": ("xlamini.debug", "did you mean print"),
    "mapp": ("xlamini.tree", "did you mean map"),
    "relu": ("xlamini.numpy", "there is xlamini.nn.relu"),
    "softmax": ("xlamini.lax", "there is xlamini.nn.softmax"),
    "sin": ("xlamini", "there is xlamini.numpy.sin"),
    "erf": ("xlamini.numpy", "there is xlamini.scipy.special.erf"),
    "logsumexp": ("xlamini.numpy", "there is xlamini.nn.logsumexp"),
    "scan": ("xlamini", "there is xlamini.lax.scan"),
    "sum": ("xlamini.lax", "there is xlamini.numpy.sum"),
}


@pytest.mark.parametrize("name", NEAR)
def test_misspelt_names_and_names_of_other_modules(name: str) -> None:
    module, advice = NEAR[name]
    assert not hasattr(import_module(module), name)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{name}'; {advice}"):
        getattr(import_module(module), name)
    there = advice.split()[-1]
    owner, _, member = (there if "." in there else f"{module}.{there}").rpartition(".")
    assert hasattr(import_module(owner), member)


def test_an_import_says_it_too() -> None:
    with pytest.raises(ImportError, match=r"no attribute 'tree_multimap'; write xlamini\.tree\.map"):
        exec("from xlamini import tree_multimap")


@pytest.mark.full
def test_a_traceback_ends_with_the_advice_and_no_guess_of_pythons() -> None:
    for code, last in {
        "import xlamini.numpy; xlamini.numpy.cat": "has no attribute 'cat'; write jnp.concatenate([x, y], axis=0)",
        "import xlamini.numpy as jnp; jnp.ones(3).dim()": "has no attribute 'dim'; write x.ndim",
    }.items():
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert ran.stderr.strip().endswith(last)


def test_modules_list_public_names_alone() -> None:
    for module in (xlamini, jnp, xlamini.lax, xlamini.debug):
        assert [name for name in dir(module) if name.startswith("_") and not name.startswith("__")] == []
        assert set(module.__all__) <= set(dir(module))
    assert {"annotations", "core", "runtime"} & {*dir(xlamini), *dir(xlamini.debug)} == set()


@pytest.mark.parametrize("kind", ["function", "method", "traced"])
@pytest.mark.parametrize(
    ("wrong", "right"), [("dim", "axis"), ("keepdim", "keepdims"), ("axes", "axis"), ("axs", "axis")]
)
def test_arguments_of_other_libraries(kind: str, wrong: str, right: str) -> None:
    calls: dict[str, Any] = {
        "function": lambda: jnp.sum(X, **{wrong: 0}),
        "method": lambda: X.sum(**{wrong: 0}),
        "traced": lambda: xlamini.jit(lambda x: jnp.sum(x, **{wrong: 0}))(X),
    }
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'; did you mean {right}"):
        calls[kind]()
    assert float(jnp.sum(X, **{right: 0})) == 6


def test_help_begins_with_what_it_is_and_the_doors() -> None:
    page = pydoc.render_doc(xlamini, renderer=pydoc.plaintext)
    head, _, _ = page.partition("PACKAGE CONTENTS")
    words = ("is traced once", "import xlamini", "The doors:", "- transformations", "- files")
    places = [head.index(word) for word in words]
    assert places == sorted(places) and places[-1] < 2000


def test_the_doors_and_the_lines_of_help_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = str(xlamini.__doc__)
    doors = re.findall(r"`([a-z_.]+)`", text.partition("The doors:")[2])
    for door in doors:
        value: Any = xlamini
        for part in door.split("."):
            value = getattr(value, part)
    code = textwrap.dedent("\n".join(line for line in text.splitlines() if not line or line.startswith("    ")))
    exec(code, {})
    assert len(doors) > 30 and len([line for line in code.splitlines() if line]) == 6
    assert capsys.readouterr().out.startswith("[0.")
