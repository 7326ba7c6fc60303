"""Errors of wrong arguments name the public function and the argument, and are short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp

V, M = np.arange(3.0, dtype=np.float32), np.arange(6.0, dtype=np.float32).reshape(2, 3)
LOOP: list[Any] = []
LOOP.append(LOOP)
LARGE = xlamini.ShapeDtypeStruct((2**31 + 8,), np.int8)
NUMBERS = jnp.arange(3)
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "diag": (lambda: jnp.diag(V, k=1j), "diag: k must be an integer, got 1j"),
    "diff": (lambda: jnp.diff(V, n=1.5), r"diff: .*; it was given n=1.5"),
    "diagonal": (lambda: jnp.diagonal(M, offset=1.5), "diagonal: offset must be an integer, got 1.5"),
    "tensordot": (lambda: jnp.tensordot(M, M, axes=1.5), r"tensordot: .*; it was given axes=1.5"),
    "tri of an array": (lambda: jnp.tri(3, k=V), "tri: k must be an integer"),
    "eye": (lambda: jnp.eye(3, k=1.5), "eye: k must be an integer, got 1.5"),
    "tril": (lambda: jnp.tril(M, k=1j), "tril: k must be an integer"),
    "no axes": (lambda: jnp.concatenate([V, V], axis=[]), "concatenate: axis must be an integer"),
    "a list": (lambda: lax.sin([1.0]), r"sin: an array or a number is needed.*; it was given operand 0=\[1.0\]"),
    "two operands": (lambda: lax.add([1.0], 2.0), "add: an array or a number is needed"),
    "a large number": (lambda: jnp.add(NUMBERS, 2**40), "add: Python int 1099511627776 does not fit in int32"),
    "an operator": (lambda: NUMBERS + 2**40, "add: Python int 1099511627776 does not fit .*; it was given the other"),
    "a limit": (lambda: jnp.clip(NUMBERS, 0, 2**40), r"clip: Python int .* max=1099511627776"),
    "an array of it": (lambda: jnp.asarray(2**40), "asarray: Python int 1099511627776 does not fit in int32"),
    "a full array": (lambda: jnp.full(3, 2**40), "full: Python int 1099511627776 does not fit in int32"),
    "a mesh": (lambda: xlamini.make_mesh((1,), True), "axis_names must be a string or a tuple of names, got True"),
    "sizes": (lambda: jnp.ones(3).reshape(tuple(range(3000))), r"reshape: cannot reshape .* 3000 sizes in all"),
    "more sizes": (lambda: jnp.ones(3).reshape(tuple(range(1, 3000))), r"reshape: cannot reshape .* 2999 sizes in all"),
    "a list without end": (lambda: jnp.kron(LOOP, V), "kron: the pytree contains itself"),
    "axes without end": (lambda: jnp.sum(M, axis=LOOP), "sum: an argument contains itself"),
    "a number's type": (lambda: jnp.float32("text"), "float32: could not convert string"),
    "a triangle": (lambda: jnp.tril(M, k=1.5), "tril: k must be an integer"),
    "a flag": (lambda: jnp.sum(M, keepdims=[]), "sum: keepdims must be True or False"),
    "a device": (lambda: xlamini.default_device(object()), "default_device must be a device"),
    "a device of a program": (lambda: xlamini.jit(lambda: jnp.ones(3, device=2.0))(), "device must be a device or a"),
    "types": (
        lambda: xlamini.eval_shape(lambda: jnp.add(V, np.array(["a"]))),
        "(argument 'y' of add: no array can have|add:) dtype <U1",
    ),
    "a long text": (lambda: jnp.sum(M, axis=tuple(range(1, 3000))), "sum: "),
    "edges": (lambda: jnp.trim_zeros(V, trim=3), "trim_zeros: trim must be"),
    "a large axis": (lambda: xlamini.eval_shape(lambda x: x.at[2**31 + 3].set(1), LARGE), "set: an axis of 2147483656"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_function_and_the_argument_are_named(name: str) -> None:
    call, words = CALLS[name]
    with pytest.raises((TypeError, ValueError, ArithmeticError, RecursionError), match=words) as found:
        call()
    assert len(str(found.value)) < 400


def test_the_function_is_named_while_tracing_too() -> None:
    with pytest.raises(TypeError, match=r"diff: .*; it was given n=1.5"):
        xlamini.jit(lambda v: jnp.diff(v, n=1.5))(V)
    with pytest.raises(TypeError, match="sin: an array or a number is needed"):
        xlamini.grad(lambda x: lax.sin([x]))(1.0)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jnp.zeros(3, object), "zeros: no array can have dtype object"),
    (lambda: jnp.sin(np.array(["a"])), "argument 'x' of sin: no array can have dtype <U1"),
])
def test_the_function_is_named_once(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError) as found:
        call()
    assert str(found.value).startswith(words)


def test_errors_of_the_user_stay_as_they_are() -> None:
    def wrong(x: Any) -> Any:
        raise TypeError("of mine")

    with pytest.raises(TypeError) as found:
        xlamini.jit(wrong)(1.0)
    assert str(found.value) == "of mine"
