"""Unreduced and reduced values along explicit axes: their types, as JAX gives them, values, derivatives and errors."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, jit, lax, make_mesh, nn, numpy as jnp, reshard, set_mesh, vmap
from xlamini.errors import ShardingError, ShardingTypeError
from xlamini.sharding import AxisType, NamedSharding
from xlamini.staging.run.eager import program_cache

MESH = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
RNG = np.random.default_rng(0)
LEFT, RIGHT = (RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 16), (16, 4)))
PRODUCT = LEFT @ RIGHT
MATRICES = (((1,), (0,)), ((), ()))

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def on_mesh() -> Iterator[None]:
    with set_mesh(MESH):
        yield


def dot(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, out_sharding=P(unreduced={"x"}))


def values() -> dict[str, Any]:
    a, b = reshard(LEFT, P(None, "x")), reshard(RIGHT, P("x"))
    z = dot(a, b)
    whole = reshard(z, P())
    return {
        "a": a,
        "b": b,
        "z": z,
        "whole": whole,
        "r": reshard(whole, P(reduced={"x"})),
        "s": reshard(whole, P("x")),
        "zy": reshard(whole, P("y", unreduced={"x"})),
        "ry": reshard(whole, P("y", reduced={"x"})),
    }


def whole(x: Any) -> np.ndarray:
    """The value of an array, its sum taken where it is unreduced."""
    return np.asarray(reshard(x, P()) if "U:" in str(x.aval) else x)


def collectives(fun: Function, *args: Any) -> int:
    text = jit(fun).lower(*args).compile().as_text()
    return len(re.findall(r" (?:all-reduce|all-gather|reduce-scatter|all-to-all)\(", text))


# The functions of one value that take an unreduced one, and the type of what they return, as JAX 0.10.2 gives it.
# JAX has no rule yet for those in the second table.
AS_IN_JAX = """
lambda q: q + q | f32[4,4]{U:x}
lambda q: q.astype(jnp.bfloat16).astype(jnp.float32) | f32[4,4]{U:x}
lambda q: q.T | f32[4,4]{U:x}
lambda q: q.reshape(2, 2, 4) | f32[2,2,4]{U:x}
lambda q: q.sum() | f32[]{U:x}
lambda q: q.sum(0) | f32[4]{U:x}
lambda q: jnp.broadcast_to(q, (3, 4, 4)) | f32[3,4,4]{U:x}
lambda q: q[None] | f32[1,4,4]{U:x}
lambda q: q[:, 0] | f32[4]{U:x}
lambda q: lax.pad(q, 1.0, ((2, 2, 0), (0, 0, 0))) | f32[8,4]{U:x}
lambda q: jnp.concatenate([q, q]) | f32[8,4]{U:x}
lambda q: jnp.stack([q, q]) | f32[2,4,4]{U:x}
lambda q: jnp.split(q, 2, 1)[0] | f32[4,2]{U:x}
lambda q: lax.select(WHOLE > 0, q, q + q) | f32[4,4]{U:x}
lambda q: jnp.roll(q, 1, 1) | f32[4,4]{U:x}
lambda q: jnp.ones_like(q) | f32[4,4]{U:x}
lambda q: jnp.einsum("ij->i", q) | f32[4]{U:x}
lambda q: lax.optimization_barrier(q) | f32[4,4]{U:x}
lambda q: lax.stop_gradient(q) | f32[4,4]{U:x}
lambda q: jit(lambda w: w + w)(q) | f32[4,4]{U:x}
lambda q: lax.cond(True, lambda w: w + w, lambda w: w, q) | f32[4,4]{U:x}
lambda q: lax.scan(lambda c, _: (c + c, None), q, None, length=3)[0] | f32[4,4]{U:x}
lambda q: lax.fori_loop(0, 3, lambda i, c: c + c, q) | f32[4,4]{U:x}
"""
MORE_THAN_JAX = """
lambda q: -q | f32[4,4]{U:x}
lambda q: q - q * 0.5 | f32[4,4]{U:x}
lambda q: q / 2 | f32[4,4]{U:x}
lambda q: q.mean() | f32[]{U:x}
lambda q: q.reshape(16) | f32[16]{U:x}
lambda q: jnp.where(WHOLE > 0, q, 1) | f32[4,4]{U:x}
lambda q: lax.dynamic_slice(q, (ONE, 0), (2, 4)) | f32[2,4]{U:x}
lambda q: lax.dynamic_update_slice(q, q[:2], (ONE, 0)) | f32[4,4]{U:x}
lambda q: lax.scan(lambda c, row: (c, row + row), 0.0, q)[1] | f32[4,4]{U:x}
lambda q: lax.scan(lambda c, row: (c, row + row), 0.0, q, reverse=True, unroll=3)[1] | f32[4,4]{U:x}
lambda q: vmap(lambda w: w + w)(q) | f32[4,4]{U:x}
lambda q: vmap(lambda w: 2 * w.sum(), in_axes=1)(q) | f32[4]{U:x}
"""
NAMES = {"jnp": jnp, "lax": lax, "jit": jit, "vmap": vmap, "WHOLE": PRODUCT, "ONE": jnp.asarray(1)}


@pytest.mark.parametrize("row", [line for line in (AS_IN_JAX + MORE_THAN_JAX).split("\n") if line])
def test_linear_operations_take_unreduced_values(row: str) -> None:
    text, expected = row.split(" | ")
    fun, z = eval(text, NAMES), values()["z"]
    found = jit(fun)(z)
    assert found.aval.str_short() == expected
    np.testing.assert_allclose(whole(found), fun(jnp.asarray(PRODUCT)), rtol=2e-2, atol=1e-3)


def test_linear_operations_communicate_nothing() -> None:
    def several(z: Any, r: Any) -> Any:
        return (jnp.stack([z, -z.T / 2]) * r - 2 * z).sum(0).reshape(2, 8)

    found = values()
    assert collectives(several, found["z"], found["r"]) == 0
    taken = jit(several)(found["z"], found["r"])
    expected = np.stack([PRODUCT, -PRODUCT.T / 2]) * PRODUCT - 2 * PRODUCT
    assert str(taken.aval) == "float32[2,8]{U:x}"
    np.testing.assert_allclose(whole(taken), expected.sum(0).reshape(2, 8), rtol=1e-5, atol=1e-4)


# Two operands, and the type of the result, or a part of the error.
PAIRS = """
z + z | f32[4,4]{U:x}
z + zy | f32[4@y,4]{U:x}
z * r | f32[4,4]{U:x}
zy * ry | f32[4@y,4]{U:x}
r + r | f32[4,4]{R:x}
r * ry | f32[4@y,4]{R:x}
r + 1 | f32[4,4]{R:x}
r @ r | f32[4,4]
s @ r | f32[4@x,4]
z + whole | add of f32[4,4]{U:x} and f32[4,4] needs all operands unreduced along 'x' or none; xlamini.reshard
z + r | needs all operands unreduced along 'x' or none
z + s | needs all operands unreduced along 'x' or none
z + 1 | needs all operands unreduced along 'x' or none
z * z | mul of f32[4,4]{U:x} and f32[4,4]{U:x} is not linear in an operand that is unreduced along 'x'
z * whole | so the other must be reduced along it, as by xlamini.reshard(x, P(reduced={'x'}))
z * s | so the other must be reduced along it
z @ whole | dot_general of f32[4,4]{U:x} and f32[4,4] is not linear in an operand that is unreduced along 'x'
z < z | lt of f32[4,4]{U:x} and f32[4,4]{U:x} is not linear
r + whole | add of f32[4,4]{R:x} and f32[4,4] needs all operands reduced along 'x' or none; xlamini.reshard
r * s | needs all operands reduced along 'x' or none
"""


@pytest.mark.parametrize("row", [line for line in PAIRS.split("\n") if line])
@pytest.mark.parametrize("mode", ["jit", "eager"])
def test_pairs_of_operands(row: str, mode: str) -> None:
    text, expected = row.split(" | ")
    operands = values()

    def fun(found: dict[str, Any]) -> Any:
        return eval(text, {}, found)

    run = jit(fun) if mode == "jit" else fun
    if not expected.startswith("f32["):
        with pytest.raises(ShardingTypeError, match=re.escape(expected)):
            run(operands)
        return
    found, plain = run(operands), {name: jnp.asarray(PRODUCT) for name in operands}
    assert found.aval.str_short() == expected
    np.testing.assert_allclose(whole(found), fun(plain), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("fun", [jnp.sin, jnp.max, jnp.sort, lambda z: z**2, lambda z: z.astype(int)])
def test_other_operations_refuse_unreduced_values(fun: Function) -> None:
    with pytest.raises(ShardingError, match=r"is not linear in an operand that is unreduced along 'x', .*reshard"):
        fun(values()["z"])


def test_sums_over_split_dimensions() -> None:
    found = values()
    a, b, s = found["a"], found["b"], found["s"]
    there = P(unreduced={"x"})
    sums = {
        "dot": (lambda a, b: jnp.dot(a, b, out_sharding=there), (a, b), PRODUCT),
        "matmul": (lambda a, b: jnp.matmul(a, b, out_sharding=there), (a, b), PRODUCT),
        "tensordot": (lambda a, b: jnp.tensordot(a, b, 1, out_sharding=there), (a, b), PRODUCT),
        "einsum": (lambda a, b: jnp.einsum("ij,jk->ki", a, b, out_sharding=there), (a, b), PRODUCT.T),
        "dot_general": (lambda a, b: lax.dot_general(a, b, MATRICES, out_sharding=there), (a, b), PRODUCT),
        "reduce_sum": (lambda s: lax.reduce_sum(s, (0,), out_sharding=there), (s,), PRODUCT.sum(0)),
        "einsum of one": (lambda a: jnp.einsum("ij->i", a, out_sharding=there), (a,), LEFT.sum(1)),
    }
    for name, (fun, args, expected) in sums.items():
        taken = jit(fun)(*args)
        assert str(taken.aval).endswith("{U:x}") and taken.sharding.spec.unreduced == {"x"}, name
        np.testing.assert_allclose(whole(taken), expected, rtol=1e-4, atol=1e-4, err_msg=name)
    assert collectives(lambda a, b: sums["einsum"][0](a, b) + sums["dot"][0](a, b).T, a, b) == 0


def test_a_sum_that_is_left_open_prints_as_in_jax() -> None:
    found = values()
    text = str(xlamini.make_jaxpr(dot)(found["a"], found["b"])).replace("\n", " ")
    assert re.sub(" +", " ", text) == (
        "{ lambda ; a:f32[4,16@x] b:f32[16@x,4]. let c:f32[4,4]{U:x} = dot_general[ dimension_numbers=(([1], [0]), "
        "([], [])) preferred_element_type=float32 ] a b in (c,) }"
    )
    z = found["z"]
    assert (str(z.aval), z.sharding.spec) == ("float32[4,4]{U:x}", P(None, None, unreduced={"x"}))
    assert repr(z) == "Array(shape=(4, 4), dtype=float32)" and not z.is_fully_replicated
    assert repr(z.aval.sharding.spec) == "P(None, None, unreduced={'x'})"
    terms = {part.device.id: np.asarray(part.data) for part in z.addressable_shards}
    np.testing.assert_allclose(terms[0] + terms[4], PRODUCT, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(terms[0], LEFT[:, :8] @ RIGHT[:8], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("spec", "args"),
    [(P(unreduced={"x"}), "whole whole"), (P(unreduced={"y"}), "a b"), (P(unreduced={"x"}), "s whole")],
)
def test_a_sum_can_be_left_open_only_along_what_is_summed_over(spec: P, args: str) -> None:
    operands = [values()[name] for name in args.split()]
    with pytest.raises(ShardingTypeError, match=r"dot: out_sharding is .* only where what is summed over is split"):
        jnp.dot(*operands, out_sharding=spec)


SPECS = [
    P(),
    P("x"),
    P(("x", "y")),
    P(unreduced={"x"}),
    P("y", unreduced={"x"}),
    P(unreduced={"x", "y"}),
    P(unreduced={"y"}, reduced={"x"}),
    P("y", reduced={"x"}),
]


@pytest.mark.parametrize("source", SPECS, ids=str)
def test_reshard_from_and_to_every_spec(source: P) -> None:
    table = RNG.standard_normal((8, 8)).astype(np.float32)

    def moved(x: Any) -> Any:
        start = reshard(2 * x, source)
        return [reshard(start, target) for target in SPECS]

    for target, found in zip(SPECS, jit(moved)(table), strict=True):
        assert found.aval.sharding.spec == P(*target, *[None] * (2 - len(target)), **_sums(target)), target
        np.testing.assert_array_equal(whole(found), 2 * table, err_msg=str(target))


def _sums(spec: P) -> dict[str, Any]:
    return {"unreduced": spec.unreduced, "reduced": spec.reduced}


def test_device_put_of_partial_sums() -> None:
    table = np.arange(16, dtype=np.float32).reshape(4, 4)
    sharding = NamedSharding(MESH, P(unreduced={"x"}))
    terms = xlamini.device_put(table, sharding)
    assert str(terms.aval) == "float32[4,4]{U:x}"
    np.testing.assert_array_equal(sum(np.asarray(s.data) for s in terms.addressable_shards), 4 * table)
    for there in (P(), P("x"), P(unreduced={"y"}), P(reduced={"x"}), xlamini.devices()[3]):
        np.testing.assert_array_equal(whole(xlamini.device_put(terms, there)), table)
    reduced = xlamini.device_put(table, P(reduced={"x"}))
    assert str(reduced.aval) == "float32[4,4]{R:x}" and reduced.is_fully_replicated
    np.testing.assert_array_equal(reduced, table)
    assert not sharding.is_equivalent_to(NamedSharding(MESH, P()), 2)
    assert reduced.sharding.is_equivalent_to(NamedSharding(MESH, P()), 2)
    for read in (np.asarray, lambda x: x.tolist(), xlamini.device_get):
        with pytest.raises(ShardingError, match=r"has a term of a sum on each device, .* xlamini.reshard\(x, P\(\)\)"):
            read(terms)


def test_specs_name_explicit_axes() -> None:
    auto = make_mesh((2, 4), ("x", "y"), axis_types=AxisType.Auto)
    with pytest.raises(ShardingError, match="names the axis 'x', which is of type Auto; a value is unreduced"):
        NamedSharding(auto, P(unreduced={"x"}))
    with pytest.raises(ShardingError, match="names the axis 'w', which the mesh does not have"):
        NamedSharding(MESH, P(reduced={"w"}))


# --- derivatives

LOSSES: dict[str, Function] = {
    "square": lambda r, s: (r * r).sum(),
    "linear": lambda r, s: (2 * r - r / 3).mean(),
    "activations": lambda r, s: (nn.relu(r) + nn.softmax(r) * jnp.tanh(r)).sum(),
    "rows": lambda r, s: (r[0] * r[1]).sum() + r.max() + lax.dynamic_slice(r, (1, 0), (2, 2)).sum(),
    "product": lambda r, s: jnp.tanh(s @ r).sum(),
    "product of wholes": lambda r, s: ((PRODUCT @ r) ** 2).sum(),
    "as split": lambda r, s: (reshard(r, P("x")) * s).sum(),
    "cumulative": lambda r, s: (jnp.cumsum(r, 0) * jnp.sort(r, 0)).sum(),
    "layers": lambda r, s: lax.scan(lambda h, w: (jnp.tanh(h @ w), None), s, jnp.stack([r, 2 * r]))[0].sum(),
    "carry": lambda r, s: lax.scan(lambda c, w: (jnp.tanh(c * w), None), r[0], r)[0].sum(),
    "cond": lambda r, s: lax.cond(s[0, 0] > 0, jnp.sin, lambda w: w * w, r).sum(),
    "remat": lambda r, s: xlamini.checkpoint(lambda w: jnp.sin(s @ w).sum())(r),
    "mapped": lambda r, s: vmap(lambda w: (w * w).sum())(r).sum(),
    "table": lambda r, s: (r.at[reshard(np.array([1, 0, 1, 3]), P("x"))].get(out_sharding=P("x")) * s).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_reduced_values_are_unreduced(name: str) -> None:
    found = values()

    def loss(r: Any, s: Any) -> Any:
        out = LOSSES[name](r, s)
        return reshard(out, P()) if "{" in str(xlamini.typeof(out)) else out

    gradient = jit(xlamini.grad(loss))(found["r"], found["s"])
    assert str(gradient.aval) == "float32[4,4]{U:x}"
    expected = xlamini.grad(loss)(found["whole"], found["s"])
    np.testing.assert_allclose(whole(gradient), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.full
def test_gradients_in_both_directions() -> None:
    found = values()
    z, r, s, a, b = (found[name] for name in "z r s a b".split())
    gradient = jit(xlamini.grad(lambda z: (reshard(z + z * r, P("x")) * s).sum()))(z)
    assert str(gradient.aval) == "float32[4,4]{R:x}"
    np.testing.assert_allclose(gradient, PRODUCT * (1 + PRODUCT), rtol=1e-4, atol=1e-3)
    ct_a, ct_b = xlamini.grad(lambda a, b: (reshard(dot(a, b), P()) ** 2).sum(), (0, 1))(a, b)
    assert (str(ct_a.aval), str(ct_b.aval)) == ("float32[4,16@x]", "float32[16@x,4]")
    np.testing.assert_allclose(ct_a, 2 * PRODUCT @ RIGHT.T, rtol=1e-4, atol=1e-3)
    out, pulled = xlamini.vjp(lambda r: r * 3, r)
    assert str(pulled(jnp.ones((4, 4)))[0].aval) == "float32[4,4]{U:x}" and str(out.aval) == "float32[4,4]{R:x}"
    value, tangent = jit(lambda a, b: xlamini.jvp(dot, (a, b), (a, b)))(a, b)
    assert str(tangent.aval) == str(value.aval) == "float32[4,4]{U:x}"
    np.testing.assert_allclose(whole(tangent), 2 * PRODUCT, rtol=1e-4, atol=1e-3)
    batched = jit(vmap(dot, in_axes=(0, None)))(reshard(np.stack([LEFT, 2 * LEFT]), P(None, None, "x")), b)
    assert str(batched.aval) == "float32[2,4,4]{U:x}"
    np.testing.assert_allclose(whole(batched)[1], 2 * PRODUCT, rtol=1e-4, atol=1e-3)


@pytest.mark.full
def test_one_reduction_for_gradients_of_many_batches() -> None:
    """Within the loops over layers and batches nothing is communicated; the sum of all gradients is taken once."""

    def loss(weights: Any, batch: Any) -> Any:
        return (lax.scan(lambda h, w: (jnp.tanh(h @ w), None), batch, weights)[0] ** 2).sum()

    def step(weights: Any, batches: Any) -> Any:
        def of_batch(total: Any, batch: Any) -> Any:
            gradient = xlamini.grad(loss)(weights, batch)
            assert xlamini.typeof(gradient).sharding.spec.unreduced == {"x"}
            return total + gradient, None

        start = reshard(jnp.zeros_like(weights), P(unreduced={"x"}))
        return reshard(lax.scan(of_batch, start, batches)[0], P())

    weights = RNG.standard_normal((3, 4, 4)).astype(np.float32) / 2
    batches = RNG.standard_normal((5, 2, 4)).astype(np.float32)
    operands = xlamini.device_put(weights, P(reduced={"x"})), xlamini.device_put(batches, P(None, "x"))
    found = jit(step)(*operands)
    assert str(found.aval) == "float32[3,4,4]"
    expected = sum(np.asarray(xlamini.grad(loss)(weights, batch)) for batch in batches)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    text = jit(step).lower(*operands).compile().as_text()
    assert len(re.findall(r" all-reduce\(", text[text.index("ENTRY") :])) == 1 == collectives(step, *operands)


def test_what_a_rewrite_leaves_open_is_not_reported_by_its_operation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a product has one that sums over a split dimension, which no user could mend."""
    monkeypatch.setattr(program_cache, "_OPERATION_MS", 0.0)  # so that each operation would run by itself
    found = values()
    gradient = xlamini.grad(lambda r: jnp.tanh(found["s"] @ r).sum())(found["whole"])
    whole_s, r = np.asarray(found["s"]), np.asarray(found["whole"])
    np.testing.assert_allclose(gradient, whole_s.T @ (1 - np.tanh(whole_s @ r) ** 2), rtol=1e-4, atol=1e-4)
