"""shard_map and pmap over a mesh of one device: what the plain functions give."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, checkpoint, grad, jit, lax, make_jaxpr, make_mesh, numpy as jnp, pmap, shard_map, vmap

MESH = make_mesh((1, 1), ("x", "y"), axis_types=xlamini.sharding.AxisType.Auto)
X = np.linspace(-1, 1, 12).astype(np.float32).reshape(4, 3)


def scanned(x: Any) -> Any:
    return lax.scan(lambda c, v: (jnp.tanh(c + v), c), jnp.zeros(3), x)[1]


COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "x"),
    "pmax": lambda x: lax.pmax(x, ("x", "y")),
    "gather": lambda x: lax.all_gather(x, "x", tiled=True),
    "scatter": lambda x: lax.psum_scatter(x, "y", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", [(0, 0)]),
    "pbroadcast": lambda x: lax.pbroadcast(x, "x", 0),
    "index": lambda x: x + lax.axis_index(("x", "y")),
    "pcast": lambda x: lax.pcast(x, ("x", "y"), to="varying"),
}
PROGRAMS = {"tanh": jnp.tanh, "scan": scanned, "checkpoint": checkpoint(scanned), "jit": jit(scanned)}


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_one(name: str, checked: bool) -> None:
    f = shard_map(COLLECTIVES[name], mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=checked)
    near(f(X), X)
    near(jit(f)(X), X)
    near(grad(lambda x: (f(x) ** 2).sum())(X), 2 * X)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_one(name: str) -> None:
    plain = PROGRAMS[name]
    f = shard_map(plain, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    near(f(X), plain(X))
    near(grad(lambda x: f(x).sum())(X), grad(lambda x: plain(x).sum())(X))
    near(vmap(f)(np.stack([X, 2 * X])), vmap(plain)(np.stack([X, 2 * X])))
    near(pmap(plain)(X[None])[0], plain(X))


def test_the_jaxpr_says_what_varies() -> None:
    f = shard_map(
        lambda a, w: lax.psum(jnp.sum(a * w), ("x", "y")), mesh=MESH, in_specs=(P("x", "y"), P()), out_specs=P()
    )
    assert str(make_jaxpr(f)(X, np.float32(2))) == TEXT


TEXT = """\
{ lambda ; a:f32[4,3] b:f32[]. let
    c:f32[] = shard_map[
      check_vma=True
      in_specs=(P('x', 'y'), P())
      jaxpr={ lambda ; d:f32[4,3]{V:x,y} e:f32[]. let
          f:f32[]{V:x,y} = pvary[axes=('x', 'y')] e
          g:f32[4,3]{V:x,y} = mul d f
          h:f32[]{V:x,y} = reduce_sum[axes=(0, 1)] g
          i:f32[] = psum[axes=('x', 'y') axis_index_groups=None] h
        in (i,) }
      manual=('x', 'y')
      mesh=Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto))
      out_specs=(P(),)
    ] a b
  in (c,) }"""


def test_types_inside() -> None:
    seen: list[str] = []

    def f(a: Any, w: Any) -> Any:
        seen.extend(str(xlamini.typeof(x)) for x in (a, w, a * w, lax.psum(a, "x"), lax.pcast(w, "y", to="varying")))
        return a

    shard_map(f, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))(X, np.float32(2))
    assert seen == ["float32[4,3]{V:x}", "float32[]", "float32[4,3]{V:x}", "float32[4,3]", "float32[]{V:y}"]
