"""Classes registered as pytrees that check their leaves: they see arrays, traced values, types, or a plain `object()`.

So does JAX. Where the library looks at the structure of a tree, it shows them no number and no bool.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.sharding import NamedSharding, PartitionSpec as P


@xlamini.tree_util.register_pytree_node_class
class Field:
    """An array; anything else is refused, as libraries do that check their fields."""

    def __init__(self, data: Any):
        if type(data) is not object and not hasattr(data, "dtype") and not isinstance(data, NamedSharding | P):
            raise TypeError(f"a field takes an array, got {data!r}")
        self.data = data

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.data,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Field:
        return cls(*children)


def double(field: Field) -> Field:
    return Field(field.data * 2)


def total(field: Field) -> Any:
    return field.data.sum()


@xlamini.custom_vjp
def with_vjp(field: Field) -> Any:
    return total(field)


with_vjp.defvjp(lambda f: (total(f), f), lambda f, ct: (Field(jnp.ones_like(f.data) * ct * 2),))


@xlamini.custom_jvp
def with_jvp(field: Field) -> Field:
    return double(field)


with_jvp.defjvp(lambda primals, tangents: (double(*primals), double(*tangents)))

PER_DEVICE = xlamini.shard_map(
    double, mesh=xlamini.make_mesh((1,), ("x",), devices=xlamini.devices()[:1]), in_specs=P(), out_specs=P()
)
WAYS: dict[str, Callable[[Field], Any]] = {
    "jit": xlamini.jit(double),
    "a donated argument": xlamini.jit(double, donate_argnums=0),
    "a donated argument by its name": lambda f: xlamini.jit(double, donate_argnames="field")(field=f),
    "lower": lambda f: xlamini.jit(double, donate_argnums=0).lower(f).compile()(f),
    "trace": lambda f: (xlamini.jit(double).trace(f).jaxpr, f)[1],
    "grad": lambda f: xlamini.grad(total)(double(f)),
    "jvp": lambda f: xlamini.jvp(double, (f,), (f,))[1],
    "vjp": lambda f: xlamini.vjp(double, f)[1](f)[0],
    "linearize": lambda f: xlamini.linearize(double, f)[1](f),
    "linear_transpose": lambda f: xlamini.linear_transpose(double, f)(f)[0],
    "vmap": xlamini.vmap(double),
    "checkpoint": lambda f: xlamini.grad(xlamini.checkpoint(total, prevent_cse=(True,)))(f),
    "custom_vjp": xlamini.grad(with_vjp),
    "custom_jvp": lambda f: xlamini.jvp(with_jvp, (f,), (f,))[1],
    "scan": lambda f: lax.scan(lambda c, _: (double(c), None), f, None, 1)[0],
    "while_loop": lambda f: lax.while_loop(lambda c: c.data[0] < 2, double, f),
    "cond": lambda f: lax.cond(True, double, lambda f: f, f),
    "custom_linear_solve": lambda f: lax.custom_linear_solve(double, f, lambda _, b: Field(b.data / 2), symmetric=True),
    "pure_callback": lambda f: xlamini.pure_callback(double, f, f),
    "debug.callback": lambda f: (xlamini.debug.callback(lambda f: None, f), f)[1],
    "shard_map": PER_DEVICE,
    "export": lambda f: (xlamini.export.export(xlamini.jit(lambda f: double(f).data))(f), f)[1],
}


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
def test_a_class_that_checks_its_leaves_may_be_used(way: str) -> None:
    out = WAYS[way](Field(jnp.ones(3)))
    expected = {"trace": 1, "debug.callback": 1, "export": 1, "grad": 1, "checkpoint": 1, "custom_linear_solve": 0.5}
    np.testing.assert_array_equal(out.data, np.full(3, expected.get(way, 2)))


@pytest.mark.full
@pytest.mark.parametrize(
    ("fails", "text"),
    [
        (lambda f: lax.cond(True, double, lambda f: Field(f.data[:2]), f), "branches must have equal output types"),
        (lambda f: lax.scan(lambda c, _: (Field(c.data[:2]), None), f, None, 2), "carry"),
        (lambda f: xlamini.jit(double).lower(f).compile()(Field(jnp.ones(4))), "arguments of other types"),
        (lambda f: xlamini.grad(double)(f), "must return a scalar"),
    ],
)
def test_its_mistakes_are_explained(fails: Callable[[Field], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        fails(Field(jnp.ones(3)))


@pytest.mark.full
def test_what_is_donated_is_the_leaves_of_the_argument() -> None:
    f = xlamini.jit(lambda a, *, b, c: (a.data + 1, b.data + 1, c.data + 1), donate_argnames=("c",), donate_argnums=())
    a, b, c = (Field(jnp.full(3, 1.0 * i)) for i in range(3))
    f(a, c=c, b=b)
    assert [x.data.is_deleted() for x in (a, b, c)] == [False, False, True]
