"""Names, argument names and defaults that came with JAX 0.12, and behave as there."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, lax, numpy as jnp
from xlamini.sharding import AbstractMesh, AxisType, NamedSharding, UnreducedKind

X = jnp.arange(3.0)


def test_arguments_by_keyword_and_position() -> None:
    assert float(xlamini.checkpoint(fun=jnp.sin)(0.0)) == 0.0
    assert float(xlamini.tree_util.Partial(func=jnp.add)(1.0, 2.0)) == 3.0
    assert inspect.signature(xlamini.empty_ref).bind(X, None, True).arguments["pin"] is True
    counts, _ = jnp.histogram(X, 3, None, None, None, None)
    np.testing.assert_array_equal(counts, [1, 1, 1])
    np.testing.assert_array_equal(lax.erfc(X, accuracy=lax.AccuracyMode.HIGHEST), lax.erfc(X))
    with pytest.raises(TypeError, match="erfc: accuracy must be a Tolerance"):
        lax.erfc(X, accuracy="high")  # type: ignore[arg-type]


def test_top_k_is_a_list() -> None:
    found = xlamini.jit(lambda x: lax.cond(x[0] < 1, lambda: lax.top_k(x, 1), lambda: [x[:1], jnp.zeros(1, int)]))(X)
    assert type(found) is list and found[0] == 2.0


def test_meshes_and_specs() -> None:
    mesh = xlamini.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    assert not mesh.are_all_axes_explicit_or_manual and AbstractMesh((4,), ("a",)).are_all_axes_explicit_or_manual
    assert P("x").update(partitions=("y", None), unreduced={"x"}) == P("y", None, unreduced={"x"})
    assert P("x").unreduced_kind is None and P(unreduced={"y"}).unreduced_kind is UnreducedKind.sum
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.replicated_axes == {"y"} and sharding.check_compatible_aval((3,)) is None
    with pytest.raises(ValueError, match="speaks of 1 dimensions"):
        sharding.check_compatible_aval(())


@pytest.mark.parametrize(("ordered", "kind"), [(False, "DebugEffect"), (True, "OrderedDebugEffect")])
def test_effects_of_printing_have_classes(ordered: bool, kind: str) -> None:
    def f(x: Any) -> None:
        xlamini.debug.print("{}", x, ordered=ordered)

    (effect,) = xlamini.make_jaxpr(f)(1.0).effects
    assert type(effect) is getattr(xlamini.debug, kind)


def test_a_name_of_the_forward_pass() -> None:
    program = xlamini.make_jaxpr(lambda x: xlamini.ad_checkpoint.checkpoint_name_fwd(x, "a"))(X)
    assert "name[name=a]" in str(program)
