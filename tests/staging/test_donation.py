"""Donated arguments: what a call takes is gone, and who uses it is told so; what a call cannot take stays."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, random
from xlamini.errors import DeletedArrayError

jit = xlamini.jit


def step(state: Any) -> Any:
    return xlamini.tree.map(lambda x: x + 1, state)


donating = jit(step, donate_argnums=0)


def ramp() -> Any:
    return jnp.arange(3.0)


def donated() -> Any:
    """An array that a call on the C++ path has taken."""
    donating(ramp())
    x = ramp()
    assert donating(x).tolist() == [1, 2, 3]
    return x


plus_two = jit(lambda s: s + 2)
USES: dict[str, Callable[[Any], Any]] = {
    "the same function": lambda x: donating(x),
    "another function": lambda x: plus_two(x),
    "another signature": lambda x: jit(lambda tree: tree["w"] * 2)({"w": x}),
    "an operator": lambda x: x + 1,
    "an index": lambda x: x[0],
    "a function": lambda x: jnp.sin(x),
    "grad": lambda x: xlamini.grad(lambda y: (y * y).sum())(x),
    "a closure": lambda x: jit(lambda y: x + y)(1.0),
    "NumPy": lambda x: np.add(x, 1),
    "device_put": lambda x: xlamini.device_put(x, xlamini.devices()[0]),
    "a compiled program": lambda x: plus_two.lower(ramp()).compile()(x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_was_donated_cannot_be_used(use: Callable[[Any], Any]) -> None:
    plus_two(ramp())  # so that it is on the C++ path
    with pytest.raises(DeletedArrayError, match=r"float32\[3\].* was deleted or donated") as raised:
        use(donated())
    assert traceback.extract_tb(raised.value.__traceback__)[-1].filename == __file__


def test_the_argument_is_named() -> None:
    tree = {"w": ramp(), "b": ramp()}
    donating(tree)
    with pytest.raises(DeletedArrayError, match=r"the argument \"state\['b'\]\" of step, an array float32\[3\]"):
        donating(tree)


def test_a_compiled_program_donates_too() -> None:
    compiled, x = donating.lower(ramp()).compile(), ramp()
    assert compiled(x).tolist() == [1, 2, 3] and x.is_deleted()
    with pytest.raises(DeletedArrayError, match="the argument 'state' of step"):
        compiled(x)


def test_donated_by_name_and_in_keys() -> None:
    f = jit(lambda x, *, key: (x + 1, random.split(key, 1)[0]), donate_argnames=("x", "key"))
    for _ in range(2):
        x, key = ramp(), random.key(0)
        f(x=x, key=key)
        assert x.is_deleted() and key.is_deleted()


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_one_array_twice_in_a_call(argnums: Any) -> None:
    f, x = jit(lambda a, b: (a + 1, b + 2), donate_argnums=argnums), ramp()
    for _ in range(2):
        with pytest.raises(DeletedArrayError, match=r"the argument 'a' .* and the argument 'b' .* are the same array"):
            f(x, x)
        f(ramp(), ramp())
    assert x.tolist() == [0, 1, 2]


def test_what_the_function_captured_cannot_be_donated_to_it() -> None:
    x = ramp()
    with pytest.raises(DeletedArrayError, match="the array that <lambda> captured and the argument 'y'"):
        jit(lambda y: x + y, donate_argnums=0)(x)
    assert x.tolist() == [0, 1, 2]


def test_of_no_use() -> None:
    f, x = jit(lambda x, n: x.sum() + n, donate_argnums=(0, 1)), ramp()
    message = r"<lambda>: .* no output has their shape and dtype: 'x' \(float32\[3\]\)"
    with pytest.warns(UserWarning, match=message) as seen:
        f(x, jnp.float32(1))
    assert seen[0].filename == __file__
    assert x.tolist() == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x, jnp.float32(1))  # once a signature


def test_a_view_keeps_the_memory() -> None:
    x = ramp()
    view = np.asarray(x)
    donating(x)
    assert view.tolist() == [0, 1, 2]


def test_the_function_keeps_its_methods() -> None:
    assert donating.__name__ == "step" and donating.__wrapped__ is step
    assert donating.lower(ramp()).compile()(ramp()).tolist() == [1, 2, 3]
    assert donating.eval_shape(ramp()).shape == (3,)
    donating.clear_cache()
    assert xlamini.grad(lambda x: donating(x).sum())(ramp()).tolist() == [1, 1, 1]


def test_what_the_function_captured_is_not_donated() -> None:
    x, given = ramp(), ramp()
    f = jit(lambda y: x + y, donate_argnums=0)
    assert f(given).tolist() == [0, 2, 4]
    assert f(ramp()).tolist() == [0, 2, 4]  # the C++ fast path
    assert given.is_deleted() and x.tolist() == [0, 1, 2]
