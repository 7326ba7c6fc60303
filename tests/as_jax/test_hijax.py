"""Programs in the manner of JAX's pages on primitives and on users' types, with `import jax`.

The names and arguments are used as those pages use them; values are closed forms.
"""
from __future__ import annotations

import pytest

from tests.support.children import passes

PRIMITIVE = """
import xlamini.as_jax
import numpy as np
from jax import core
from jax._src import api
from jax._src.lax import lax
from jax._src.lib.mlir.dialects import hlo
from jax.extend import core as extend_core
from jax.interpreters import ad, batching, mlir

scale_add_p = extend_core.Primitive("scale_add")

def scale_add(x, y, z):
    return scale_add_p.bind(x, y, z)

def quadratic(a, b):
    return scale_add(a, a, b)

def is_missing(run):
    try:
        run()
    except Exception as error:
        assert type(error) is NotImplementedError and "'scale_add' has no" in str(error), error
        return True

def jvp(primals, tangents):
    (x, y, z), (tx, ty, tz) = primals, tangents
    dense = lambda t: lax.full_like(x, 0) if type(t) is ad.Zero else t
    return scale_add(x, y, z), scale_add(dense(tx), y, scale_add(x, dense(ty), dense(tz)))

def transpose(ct, x, y, z):
    if ad.is_undefined_primal(x):
        return scale_add(ct, y, lax.full_like(y, 0)), None, ct
    assert ad.is_undefined_primal(y)
    return None, scale_add(x, ct, lax.full_like(x, 0)), ct

def batch(args, dims):
    assert dims[0] == dims[1] == dims[2]
    return scale_add(*args), dims[0]

point, points = (2.0, 10.0), (np.array([2.0, 3.0]), np.array([10.0, 20.0]))
assert is_missing(lambda: quadratic(*point))
scale_add_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
assert quadratic(*point) == 14.0

assert is_missing(lambda: api.jit(quadratic)(*point))
scale_add_p.def_abstract_eval(lambda x, y, z: core.ShapedArray(x.shape, x.dtype))
assert is_missing(lambda: api.jit(quadratic)(*point))
mlir.register_lowering(
    scale_add_p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, y), z).result], platform="cpu"
)
assert api.jit(quadratic)(*point) == 14.0
assert api.jit(quadratic, static_argnums=1)(*point) == 14.0

assert is_missing(lambda: api.jvp(quadratic, point, (1.0, 1.0)))
ad.primitive_jvps[scale_add_p] = jvp
assert api.jvp(quadratic, point, (1.0, 1.0)) == (14.0, 5.0)
assert api.jit(lambda p, t: api.jvp(quadratic, p, t))(point, (1.0, 1.0)) == (14.0, 5.0)

assert is_missing(lambda: api.grad(quadratic)(*point))
ad.primitive_transposes[scale_add_p] = transpose
assert api.grad(quadratic)(*point) == 4.0 and api.jit(api.grad(quadratic))(*point) == 4.0

assert is_missing(lambda: api.vmap(quadratic)(*points))
batching.primitive_batchers[scale_add_p] = batch
assert np.allclose(api.vmap(quadratic)(*points), [14.0, 29.0])
assert np.allclose(api.jit(api.vmap(quadratic))(*points), [14.0, 29.0])
"""


@pytest.mark.full
def test_a_primitive_gets_its_rules_one_by_one() -> None:
    """What is missing is a NotImplementedError, of that very class, until it is given."""
    passes(PRIMITIVE)


TYPES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import xlamini.as_jax
import jax, jax.numpy as jnp, numpy as np
from dataclasses import dataclass
from jax.experimental.hijax import (
    AbstractRef, HiPrim, HiPspec, HiType, MappingSpec, ShapedArray, TransformedRef, Zero, instantiate_zeros,
    linearize_from_jvp, register_hitype, vjp_from_jvp)
from jax.sharding import NamedSharding

@dataclass(frozen=True)
class Pair:
    a: jax.Array
    b: jax.Array

@dataclass(frozen=True)
class PairTy(HiType):
    shape: tuple
    sharding: NamedSharding

    def lo_ty(self):
        return [ShapedArray(self.shape, jnp.dtype("float32"), sharding=self.sharding)] * 2
    def lower_val(self, pair):
        return [pair.a, pair.b]
    def raise_val(self, a, b):
        return Pair(a, b)
    def to_tangent_aval(self):
        return ShapedArray(self.shape, jnp.dtype("float32"), sharding=self.sharding)
    def dec_rank(self, size, spec):
        return PairTy(self.shape[1:], self.sharding.update(spec=jax.P(*self.sharding.spec[1:])))
    def inc_rank(self, size, spec):
        return PairTy((size, *self.shape), self.sharding.update(spec=jax.P(None, *self.sharding.spec)))
    def leading_axis_spec(self):
        return PairSpec()
    def shard(self, mesh, manual_axes, check_vma, spec):
        part = self.lo_ty()[0].shard(mesh, manual_axes, check_vma, spec.spec)
        return PairTy(part.shape, part.sharding)
    def unshard(self, mesh, check_vma, spec):
        whole = self.lo_ty()[0].unshard(mesh, check_vma, spec.spec)
        return PairTy(whole.shape, whole.sharding)
    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        return "pair" + self.lo_ty()[0].str_short(short_dtypes, mesh_axis_types)
    __repr__ = str_short

@dataclass(frozen=True)
class PairSpec(MappingSpec):
    pass

@dataclass(frozen=True)
class PairP(HiPspec):
    spec: jax.P
    def to_lo(self):
        return (self.spec, self.spec)

register_hitype(Pair, lambda p: PairTy(p.a.shape, jax.typeof(p.a).sharding))

class Through(HiPrim):
    def vjp_fwd(self, nzs_in, x):
        return self(x), None
    def vjp_bwd_retval(self, _res, g):
        return (g,)

class Halve(Through):
    def __init__(self, x_aval):
        self.in_avals, self.out_aval, self.params = (x_aval,), PairTy(x_aval.shape, x_aval.sharding), {}
        super().__init__()
    def expand(self, x):
        return Pair(x / 2, x / 2)
    def batch(self, axis_data, args, in_dims):
        return halve(jnp.moveaxis(args[0], in_dims[0], 0)), PairSpec()

class Join(Through):
    def __init__(self, ty):
        self.in_avals, self.out_aval, self.params = (ty,), ty.to_tangent_aval(), {}
        super().__init__()
    def expand(self, pair):
        return pair.a + pair.b
    def batch(self, axis_data, args, in_dims):
        return join(args[0]), 0

halve = lambda x: Halve(jax.typeof(x))(x)
join = lambda pair: Join(jax.typeof(pair))(pair)

x, xs = jnp.arange(3.0), jnp.arange(12.0).reshape(4, 3)
program = jax.jit(lambda x: join(halve(x))).trace(x).jaxpr
assert "pairfloat32[3] = Halve" in str(program)
assert jnp.all(jax.jit(join)(jax.jit(halve)(x)) == x)
pairs = jax.vmap(halve, out_axes=PairSpec())(xs)
assert jnp.all(jax.vmap(jax.jit(join), in_axes=PairSpec(), axis_size=4)(pairs) == xs)
assert jnp.all(jax.vmap(jax.grad(lambda x: jnp.sum(join(halve(x)) ** 2)))(xs) == 2 * xs)
total, () = jax.lax.scan(lambda c, p: (c + jnp.sum(join(p)), ()), 0.0, pairs, length=4)
assert total == 66.0

mesh = jax.make_mesh((4,), ("i",))
jax.set_mesh(mesh)
rows = jax.device_put(xs, jax.P("i"))
assert str(jax.typeof(halve(rows))) == "pairfloat32[4@i,3]"

@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=PairP(jax.P("i")))
def halved_shards(x):
    assert jax.typeof(x).shape == (1, 3)
    return halve(x)

@jax.jit
@jax.shard_map(in_specs=PairP(jax.P("i")), out_specs=jax.P("i"))
def joined_shards(pair):
    assert jax.typeof(pair).shape == (1, 3)
    return join(pair)

there = halved_shards(rows)
assert there.a.sharding.spec == jax.P("i", None) and jnp.all(joined_shards(there) == rows)
col = jnp.ones((2, 3)) @ jax.device_put(jnp.ones((3, 4)), jax.P(None, "i"))
out = jax.typeof(jnp.ones((2, 4))).sharding.update(spec=jax.P(None, "i"))
assert jax.typeof(col).sharding == out

class Sin(HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()
    def expand(self, x):
        return jnp.sin(x)
    def jvp(self, primals, tangents):
        return self(*primals), jnp.cos(primals[0]) * tangents[0]

class SinAD(Sin):
    lin, linearized = linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = vjp_from_jvp

sin = lambda x: SinAD(jax.typeof(x))(x)
np.testing.assert_allclose(jax.grad(sin)(3.0), np.cos(3.0), rtol=1e-6)
np.testing.assert_allclose(jax.linearize(sin, 3.0)[1](1.0), np.cos(3.0), rtol=1e-6)
np.testing.assert_allclose(jax.grad(jax.grad(sin))(3.0), -np.sin(3.0), rtol=1e-6)

@jax.jit
def part(ref):
    view = ref.at[1:].at[0]
    assert isinstance(view, TransformedRef) and isinstance(view.type, AbstractRef)
    view[...] = jnp.ones(3)
    return view.get(0)

ref = jax.new_ref(jnp.zeros((2, 3)))
assert part(ref) == 1.0 and jnp.sum(ref[...]) == 3.0
"""


@pytest.mark.full
def test_types_and_primitives_as_classes() -> None:
    passes(TYPES)
