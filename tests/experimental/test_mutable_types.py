"""A user's mutable type under the transformations. What JAX 0.10.2 takes too has the values that it gives there."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.experimental import cur_qdd
from xlamini.experimental.hijax import AvalQDD, HiPrimitive, MutableHiType, ShapedArray, register_hitype

XS = np.arange(4, dtype=np.float32)


@dataclass(frozen=True)
class Known:
    avals: tuple[Any, ...]
    tree: Any

    def normalize(self) -> Known:
        return Known(tuple(a.normalize() for a in self.avals), self.tree)


@dataclass(frozen=True)
class PotTy(MutableHiType):
    name: str

    def lo_ty_qdd(self, state: Known) -> list[Any]:
        return list(state.avals)

    def new_from_loval(self, state: Known, *vals: Any) -> Pot:
        return Pot(self.name, xlamini.tree.unflatten(state.tree, vals))

    def read_loval(self, state: Known, val: Pot) -> list[Any]:
        return xlamini.tree.leaves(read(val))

    def update_from_loval(self, state: Known, val: Pot, *lo_vals: Any) -> None:
        write(val, xlamini.tree.unflatten(state.tree, lo_vals))


class Pot:
    __slots__ = ("name", "val")  # so it takes no weak references

    def __init__(self, name: str, val: Any):
        self.name, self.val = name, val

    def cur_qdd(self) -> Known:
        leaves, tree = xlamini.tree.flatten(self.val)
        return Known(tuple(map(xlamini.typeof, leaves)), tree)


register_hitype(Pot, lambda pot: PotTy(pot.name))


class NewPot(HiPrimitive):
    def abstract_eval(self, *leaves: Any, name: str, tree: Any) -> Any:
        return AvalQDD(PotTy(name), Known(leaves, tree)), set()

    def to_lojax(self, *leaves: Any, name: str, tree: Any) -> Pot:
        return Pot(name, xlamini.tree.unflatten(tree, leaves))


class ReadPot(HiPrimitive):
    multiple_results = True

    def abstract_eval(self, pot: Any, *, avals: Any) -> Any:
        return list(avals), set()

    def to_lojax(self, pot: Pot, *, avals: Any) -> list[Any]:
        return xlamini.tree.leaves(pot.val)


class WritePot(HiPrimitive):
    multiple_results = True

    def abstract_eval(self, pot: Any, *leaves: Any, tree: Any) -> Any:
        if pot.aval.name == "sealed":
            raise TypeError("the pot is sealed")
        pot.mutable_qdd.update(Known(leaves, tree))
        return [], set()

    def to_lojax(self, pot: Pot, *leaves: Any, tree: Any) -> list[Any]:
        pot.val = xlamini.tree.unflatten(tree, leaves)
        return []


new_pot_p, read_pot_p, write_pot_p = NewPot("new_pot"), ReadPot("read_pot"), WritePot("write_pot")


def new(val: Any, name: str = "pot") -> Pot:
    leaves, tree = xlamini.tree.flatten(val)
    return new_pot_p.bind(*leaves, name=name, tree=tree)


def read(pot: Pot) -> Any:
    known = cur_qdd(pot)
    return xlamini.tree.unflatten(known.tree, read_pot_p.bind(pot, avals=known.avals))


def write(pot: Pot, val: Any) -> None:
    leaves, tree = xlamini.tree.flatten(val)
    write_pot_p.bind(pot, *leaves, tree=tree)


def add(pot: Pot, x: Any) -> None:
    write(pot, read(pot) + x)


def _argument(pot: Pot) -> None:
    xlamini.jit(add)(pot, 2.0)
    xlamini.jit(add)(pot, 4.0)


def _closed_over(pot: Pot) -> None:
    add_here = xlamini.jit(lambda x: add(pot, x))
    add_here(2.0), add_here(4.0)


def _scan(pot: Pot) -> None:
    lax.scan(lambda carry, x: (add(pot, x), (carry, None))[1], 0.0, XS)


def _while(pot: Pot) -> None:
    lax.while_loop(lambda i: i < 3, lambda i: (add(pot, 2.0), i + 1)[1], 0)


def _fori(pot: Pot) -> None:
    lax.fori_loop(0, 3, lambda i, carry: (add(pot, 2.0), carry)[1], 0)


def _cond(pot: Pot) -> None:
    lax.cond(jnp.float32(2.0) > 1, lambda x: add(pot, x), lambda x: write(pot, x), 6.0)


def _cond_argument(pot: Pot) -> None:
    lax.cond(jnp.float32(2.0) > 1, lambda p, x: add(p, x), lambda p, x: write(p, x), pot, 6.0)


def _grad(pot: Pot) -> None:
    assert float(xlamini.grad(lambda x: (add(pot, lax.stop_gradient(2 * x)), x * x)[1])(3.0)) == 6.0


def _grad_argument(pot: Pot) -> None:
    assert float(xlamini.grad(lambda x, p: (add(p, 2 * x), x * x)[1])(3.0, pot)) == 6.0


def _checkpoint(pot: Pot) -> None:
    xlamini.grad(xlamini.checkpoint(lambda x: (add(pot, 2 * x), x * x)[1]))(3.0)


def _jit_of_scan(pot: Pot) -> None:
    xlamini.jit(lambda p: _scan(p))(pot)


def _vmap(pot: Pot) -> None:
    xlamini.vmap(lambda x: (add(pot, 6.0), x)[1])(XS)


USES = [_argument, _closed_over, _scan, _while, _fori, _cond, _cond_argument, _grad, _grad_argument, _checkpoint,
        _jit_of_scan, _vmap]  # fmt: skip


@pytest.mark.parametrize(
    "use", [pytest.param(use, marks=[] if use in {_argument, _scan} else pytest.mark.full) for use in USES]
)
def test_a_value_keeps_what_a_program_writes(use: Callable[[Pot], None]) -> None:
    pot = new(jnp.float32(1.0))
    use(pot)
    assert float(pot.val) == 7.0


@pytest.mark.full
def test_what_a_value_holds_may_change_its_structure() -> None:
    pot = new(jnp.float32(1.0))
    put = xlamini.jit(lambda pot, x: write(pot, {"seen": x, "before": read(pot)}))
    put(pot, XS)
    np.testing.assert_array_equal(pot.val["seen"], XS)
    assert float(pot.val["before"]) == 1.0
    put(pot, XS[:2])
    np.testing.assert_array_equal(pot.val["before"]["seen"], XS)
    assert cur_qdd(pot).avals[1:] == (xlamini.typeof(XS), xlamini.typeof(XS[:2]))
    assert xlamini.typeof(pot) == PotTy("pot")


@pytest.mark.full
def test_a_value_made_inside_is_of_that_trace() -> None:
    def cube(x: Any) -> Any:
        pot = new(x * x)
        lax.fori_loop(0, 2, lambda i, carry: (add(pot, 0.0), carry)[1], 0)
        return read(pot) * x

    assert float(xlamini.jit(cube)(3.0)) == 27.0
    assert float(xlamini.grad(cube)(3.0)) == 27.0
    assert float(xlamini.grad(xlamini.jit(cube))(3.0)) == 27.0
    np.testing.assert_array_equal(xlamini.vmap(cube)(XS), XS**3)


@pytest.mark.full
def test_a_second_call_traces_no_more() -> None:
    traced: list[int] = []

    def once(pot: Pot, x: Any) -> None:
        traced.append(1)
        add(pot, x)

    jitted, pots = xlamini.jit(once), [new(jnp.float32(0.0)), new(jnp.float32(1.0))]
    for pot in (*pots, *pots):
        jitted(pot, 2.0)
    assert len(traced) == 1
    assert [float(pot.val) for pot in pots] == [4.0, 5.0]


@pytest.mark.full
def test_an_error_leaves_what_was_held() -> None:
    pot = new(jnp.float32(1.0))

    def fails(carry: Any, x: Any) -> Any:
        add(pot, x)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        lax.scan(fails, 0.0, XS)
    assert float(pot.val) == 1.0
    add(pot, 1.0)
    assert float(pot.val) == 2.0


@pytest.mark.full
def test_types_and_programs_of_a_value() -> None:
    pot = new(jnp.float32(1.0))
    assert xlamini.eval_shape(lambda p: read(p) + XS, pot).shape == (4,)
    xlamini.make_jaxpr(add)(pot, 2.0)
    assert float(pot.val) == 1.0
    np.testing.assert_array_equal(xlamini.vmap(lambda p, x: read(p) + x, in_axes=(None, 0))(pot, XS), XS + 1)


def _in_loop() -> Any:
    pot = new(0.0)
    return lax.scan(lambda carry, x: (write(pot, (x, x)), (carry, None))[1], 0.0, XS)


def _twice() -> Any:
    pot = new(0.0)
    return xlamini.jit(lambda a, b: add(a, read(b)))(pot, pot)


def _both_ways() -> Any:
    pot = new(0.0)
    return xlamini.jit(lambda p: add(p, read(pot)))(pot)


def _without_primitive() -> Any:
    return xlamini.jit(lambda x: (add(Pot("bare", jnp.zeros(2)), x), x)[1])(1.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("use", "error", "problem"),
    [
        (_in_loop, TypeError, "structure"),
        (_twice, ValueError, "passed twice"),
        (_both_ways, ValueError, r"mutable array reference of type PotTy\(name='pot'\) was both closed over"),
        (_without_primitive, TypeError, r"PotTy\(name='bare'\) without a primitive"),
        (lambda: jnp.sin(new(0.0)), TypeError, "sin"),
        (lambda: xlamini.jit(lambda p: p)(new(0.0)), ValueError, "return its value, what it holds"),
        (lambda: xlamini.grad(read)(new(0.0)), TypeError, r"differentiate is a value of the mutable type PotTy"),
        (lambda: xlamini.jit(add).lower(new(0.0), 1.0), TypeError, "add uses a value of the mutable type PotTy"),
        (lambda: xlamini.vmap(read)(new(XS)), TypeError, r"taken whole.*float32\[4\]\], not \[float32\[\]"),
        (lambda: xlamini.jit(add)(new(0.0, "sealed"), 1.0), TypeError, "the pot is sealed"),
        (lambda: cur_qdd(1.0), TypeError, "cur_qdd"),
        (lambda: MutableHiType().new_from_loval(None), NotImplementedError, "def new_from_loval"),
    ],
)
def test_what_a_value_cannot_do_is_an_error_that_says_so(use: Any, error: Any, problem: str) -> None:
    with pytest.raises(error, match=problem):
        use()


@pytest.mark.full
def test_the_type_of_a_value_is_a_hi_type() -> None:
    class Odd:
        pass

    register_hitype(Odd, lambda odd: ShapedArray((), np.dtype("float32")))
    with pytest.raises(TypeError, match="must return a HiType for a Odd"):
        xlamini.jit(lambda odd: 1.0)(Odd())
