"""Public functions whose code a library replaces, so that all who have imported one call the library's."""
from __future__ import annotations

import pickle
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, nn, numpy as jnp

FACES = (
    "", "lax", "lax.linalg", "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "random", "scipy.linalg",
    "scipy.special", "tree", "tree_util",
)
NUMBERS = (((1,), (0,)), ((), ()))
IMAGE, KERNEL = jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2))

CALLS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "dot_general": (lax.dot_general, lambda: lax.dot_general(jnp.ones((2, 2)), jnp.ones((2, 2)), NUMBERS)),
    "conv_general_dilated": (
        lax.conv_general_dilated, lambda: lax.conv_general_dilated(IMAGE, KERNEL, (1, 1), "VALID")
    ),
    "einsum": (jnp.einsum, lambda: jnp.einsum("ij,jk->ik", jnp.ones((2, 2)), jnp.ones((2, 2)))),
    "median": (jnp.median, lambda: jnp.median(jnp.arange(3.0))),
    "relu": (nn.relu, lambda: nn.relu(jnp.arange(-1.0, 2.0))),
    "normal": (xlamini.random.normal, lambda: xlamini.random.normal(xlamini.random.key(0), (2,))),
}

_instead: Callable[..., Any] = print


@contextmanager
def replaced(fun: Any, instead: Callable[..., Any]) -> Iterator[None]:
    """Within, whoever calls `fun` calls `instead(original, *args, **kwargs)`."""
    before = fun.__code__
    original = types.FunctionType(before, fun.__globals__, fun.__name__, fun.__defaults__)
    original.__kwdefaults__ = fun.__kwdefaults__

    def call(*args: Any, **kwargs: Any) -> Any:
        from tests.core import test_replaced_code

        return test_replaced_code._instead(*args, **kwargs)

    globals()["_instead"] = lambda *args, **kwargs: instead(original, *args, **kwargs)
    fun.__code__ = call.__code__
    try:
        yield
    finally:
        fun.__code__ = before


def doubled(original: Any, *args: Any, **kwargs: Any) -> Any:
    return original(*args, **kwargs) * 2


def public_functions(*faces: str) -> Iterator[tuple[str, types.FunctionType]]:
    for face in faces:
        module = import_module(f"xlamini.{face}".rstrip("."))
        for name in dir(module):
            if not name.startswith("_") and isinstance(fun := getattr(module, name), types.FunctionType):
                yield f"{face}.{name}", fun


def test_public_functions_have_no_free_variables_and_codes_of_their_own() -> None:
    functions = dict(public_functions(*FACES))
    assert len(functions) > 700
    assert [name for name, fun in functions.items() if fun.__code__.co_freevars] == []
    different = {id(fun): fun for fun in functions.values()}.values()
    assert len({fun.__code__ for fun in different}) == len(different)


@pytest.mark.parametrize("name", CALLS)
def test_replaced_code_is_what_runs(name: str) -> None:
    fun, call = CALLS[name]
    usual = np.asarray(call())
    with replaced(fun, doubled):
        np.testing.assert_array_equal(call(), usual * 2)
        np.testing.assert_array_equal(xlamini.jit(lambda: call())(), usual * 2)
    np.testing.assert_array_equal(call(), usual)


def test_replaced_code_under_transformations() -> None:
    with replaced(lax.dot_general, doubled):
        square = xlamini.grad(lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ()))))
        assert square(jnp.ones(2)).tolist() == [4.0, 4.0]
    with replaced(jnp.median, doubled):
        assert xlamini.vmap(jnp.median)(jnp.ones((2, 3))).tolist() == [2.0, 2.0]
    assert xlamini.vmap(jnp.median)(jnp.ones((2, 3))).tolist() == [1.0, 1.0]


def test_products_of_other_functions_follow_that_of_lax_and_forget_it_afterwards() -> None:
    x = jnp.ones((3, 5))
    with replaced(lax.dot_general, doubled):
        program = xlamini.jit(lambda x: (x @ x.T, jnp.dot(x, x.T), jnp.einsum("ij,kj", x, x), jnp.tensordot(x, x.T, 1)))
        assert {float(y[0, 0]) for y in program(x)} == {10.0}
    program = xlamini.jit(lambda x: (x @ x.T, jnp.dot(x, x.T), jnp.einsum("ij,kj", x, x), jnp.tensordot(x, x.T, 1)))
    assert {float(y[0, 0]) for y in program(x)} == {5.0}


def test_a_copy_of_the_function_is_the_function() -> None:
    copy: Any = types.FunctionType(jnp.cumsum.__code__, jnp.cumsum.__globals__)  # type: ignore[attr-defined]
    assert copy(jnp.arange(4)).tolist() == [0, 1, 3, 6]


def test_an_alias_has_a_name_of_its_own() -> None:
    for face in ("numpy", "tree", "tree_util"):
        functions = dict(public_functions(face))
        assert {name: fun.__name__ for name, fun in functions.items() if f"{face}.{fun.__name__}" != name} == {}
    assert jnp.abs.__qualname__ == "abs" and jnp.abs(-1.0) == jnp.absolute(-1.0) == 1.0
    assert xlamini.vmap(jnp.abs)(jnp.arange(-2.0, 0.0)).tolist() == [2.0, 1.0]
    assert pickle.loads(pickle.dumps(jnp.abs)) is jnp.abs
