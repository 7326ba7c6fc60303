"""custom_partitioning on eight CPU devices: values, the collectives of the compiled program, derivatives, errors."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import NamedSharding, P, lax, numpy as jnp
from xlamini.errors import UnexpectedTracerError
from xlamini.experimental.custom_partitioning import custom_partitioning
from xlamini.sharding import Mesh

MESH = Mesh(np.array(xlamini.devices()[:8]).reshape(4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
A = RNG.normal(size=(8, 16)).astype(np.float32)
B = RNG.normal(size=(16, 8)).astype(np.float32)


def placed(x: Any, *spec: Any) -> Any:
    return xlamini.device_put(x, NamedSharding(MESH, P(*spec)))


def collectives(f: Any, *args: Any) -> set[str]:
    text = xlamini.jit(f).lower(*args).compile().as_text()
    assert "CustomSPMDPartitioning" not in text
    return set(re.findall(r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter", text))


def whole_rows(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
    """The division of a function of rows: along the last dimension arrays are whole."""
    there = NamedSharding(mesh, P(*arg_shapes[0].sharding.spec[:-1], None))
    return mesh, lambda x: jnp.sort(x, axis=-1), there, (there,)


@pytest.fixture
def sort_rows() -> Any:
    found = custom_partitioning(lambda x: jnp.sort(x, axis=-1))
    found.def_partition(whole_rows, sharding_rule="... i -> ... i", need_replication_factors=("i",))
    return found


@pytest.mark.full
def test_rows_stay_where_they_are(sort_rows: Any) -> None:
    by_rows = placed(A, "x", None)
    out = xlamini.jit(sort_rows)(by_rows)
    assert out.sharding.spec == P("x")
    np.testing.assert_array_equal(out, np.sort(A, -1))
    assert collectives(sort_rows, by_rows) == set()
    divided = placed(A, "x", "y")
    np.testing.assert_array_equal(xlamini.jit(sort_rows)(divided), np.sort(A, -1))
    assert "all-gather" in collectives(sort_rows, divided)


@pytest.mark.full
def test_where_there_is_no_mesh_it_is_the_function(sort_rows: Any) -> None:
    for f in (sort_rows, xlamini.jit(sort_rows)):
        np.testing.assert_array_equal(f(A), np.sort(A, -1))
    np.testing.assert_array_equal(sort_rows(placed(A, "x", "y")), np.sort(A, -1))
    assert "custom_call @CustomSPMD" not in xlamini.jit(sort_rows).lower(A).as_text()


@pytest.fixture
def product() -> Any:
    """A matrix product whose shards are added by hand."""
    found = custom_partitioning(lambda a, b: a @ b)
    asked: list[Any] = []

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        asked.append([a.sharding.spec for a in (*arg_shapes, result_shape)])
        axis = arg_shapes[0].sharding.spec[1]

        def of_shards(a: Any, b: Any) -> Any:
            partial = a @ b
            return lax.psum(partial, axis) if axis else partial

        return mesh, of_shards, result_shape.sharding, tuple(a.sharding for a in arg_shapes)

    found.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    found.asked = asked
    return found


def test_collectives_of_shards(product: Any) -> None:
    a, b = placed(A, "x", "y"), placed(B, "y", None)
    out = xlamini.jit(product)(a, b)
    np.testing.assert_allclose(out, A @ B, rtol=1e-4, atol=1e-5)
    assert out.sharding.spec == P("x") and product.asked == [[P("x", "y"), P("y", None), P("x", None)]]
    assert collectives(product, a, b) == {"all-reduce"}
    assert collectives(product, placed(A, "x", None), placed(B, None, "y")) == set()


def test_inside_larger_programs(product: Any, sort_rows: Any) -> None:
    def program(a: Any, b: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return jnp.tanh(product(carry @ b, b.T)) + sort_rows(carry), None

        return lax.scan(step, a, None, length=3)[0]

    def plain(a: Any, b: Any) -> Any:
        for _ in range(3):
            a = np.tanh(a @ b @ b.T) + np.sort(a, -1)
        return a

    found = xlamini.jit(program, out_shardings=NamedSharding(MESH, P("x")))(placed(A, "x", None), placed(B))
    np.testing.assert_allclose(found, plain(A, B), rtol=1e-3, atol=1e-3)


def test_explicit_axes(sort_rows: Any) -> None:
    mesh = xlamini.make_mesh((4, 2), ("x", "y"))
    with xlamini.set_mesh(mesh):
        x = xlamini.device_put(A, P("x"))
        out = xlamini.jit(sort_rows)(x)
        assert str(out.aval) == "float32[8@x,16]"
        np.testing.assert_array_equal(out, np.sort(A, -1))


def test_within_shard_map_it_is_the_function(product: Any) -> None:
    mapped = xlamini.shard_map(lambda a: product(a, B), mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(xlamini.jit(mapped)(A), A @ B, rtol=1e-4, atol=1e-5)
    assert not product.asked


def test_several_results_and_pytrees() -> None:
    @custom_partitioning
    def both(tree: Any) -> Any:
        return {"sum": tree["a"] + tree["b"], "maximum": jnp.max(tree["a"], axis=1)}

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        (tree,) = arg_shapes
        assert set(tree) == {"a", "b"} and result_shape["sum"].shape == (8, 16)
        rows = NamedSharding(mesh, P(tree["a"].sharding.spec[0], None))
        outs = {"sum": rows, "maximum": NamedSharding(mesh, P(rows.spec[0]))}
        return mesh, both.fun, outs, ({"a": rows, "b": rows},)

    both.def_partition(partition, sharding_rule="i j, i j -> i, i j")
    out = xlamini.jit(both)({"a": placed(A, "x", "y"), "b": placed(2 * A)})
    np.testing.assert_allclose(out["sum"], 3 * A, rtol=1e-6)
    np.testing.assert_array_equal(out["maximum"], A.max(1))


def test_static_arguments_and_keywords() -> None:
    seen = []

    def power(x: Any, n: int, scale: Any = 2.0) -> Any:
        return scale * x**n

    def partition(n: int, mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        seen.append(n)
        shardings = tuple(a.sharding for a in arg_shapes)
        return mesh, lambda x, scale: scale * x**n, result_shape.sharding, shardings

    found = custom_partitioning(power, static_argnums=(1,))
    found.def_partition(partition, sharding_rule="i j, -> i j")
    for call in (lambda x: found(x, 3), lambda x: found(x, n=3), lambda x: found(n=3, x=x, scale=2.0)):
        np.testing.assert_allclose(xlamini.jit(call)(placed(A, "x", "y")), 2 * A**3, rtol=1e-5)
    assert seen == [3, 3, 3]
    with pytest.raises(UnexpectedTracerError, match=r"a static argument of power is a traced value"):
        xlamini.jit(found)(A, 3)


def test_a_rule_that_depends_on_the_types() -> None:
    found = custom_partitioning(lambda x: 2 * x)
    types = []

    def rule(mesh: Any, operands: Any, results: Any) -> Any:
        types.append((mesh.axis_names, operands[0].shape, results[0].shape))
        return "i (j k)  -> i (j k)", {"j": 4, "k": operands[0].shape[1] // 4}

    found.def_partition(twice, sharding_rule=rule)
    x = placed(A, "x", "y")
    np.testing.assert_array_equal(xlamini.jit(found)(x), 2 * A)
    assert types == [(("x", "y"), [8, 16], [8, 16])] and collectives(found, x) == set()
    found.def_partition(twice, sharding_rule=lambda *_: 3)
    with pytest.raises(ValueError, match="must produce either an SdyShardingRule object or an Einsum-like"):
        xlamini.jit(lambda x: found(x))(x)


def twice(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
    return mesh, lambda x: 2 * x, result_shape.sharding, (arg_shapes[0].sharding,)


def test_without_a_rule_results_are_whole() -> None:
    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        return mesh, lambda x: 2 * x, result_shape.sharding, (result_shape.sharding,)

    found = custom_partitioning(lambda x: 2 * x)
    found.def_partition(partition)
    out = xlamini.jit(found)(placed(A, "x", "y"))
    assert out.sharding.spec == P()
    np.testing.assert_array_equal(out, 2 * A)


def test_arrays_that_the_function_of_shards_closes_over() -> None:
    offset = jnp.arange(16.0)
    found = custom_partitioning(lambda x: x + jnp.arange(16.0))

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        there = NamedSharding(mesh, P("x", None))
        return mesh, lambda x: x + offset, there, there

    found.def_partition(partition, sharding_rule="i j -> i j")
    np.testing.assert_allclose(xlamini.jit(found)(placed(A, "x")), A + np.arange(16), rtol=1e-6)


def test_derivatives_are_those_of_a_custom_rule(sort_rows: Any, product: Any) -> None:
    for transform in (xlamini.grad, lambda f: lambda x: xlamini.jvp(f, (x,), (x,))):
        with pytest.raises(NotImplementedError, match="Differentiation rule for 'custom_partitioning' not impl"):
            transform(lambda x: jnp.sum(sort_rows(x)))(A)
    with pytest.raises(NotImplementedError, match=r"Batching rule for 'custom_partitioning' not implemented"):
        xlamini.vmap(sort_rows)(A)

    @xlamini.custom_vjp
    def matmul(a: Any, b: Any) -> Any:
        return product(a, b)

    matmul.defvjp(lambda a, b: (product(a, b), (a, b)), lambda ab, ct: (product(ct, ab[1].T), product(ab[0].T, ct)))
    a, b = placed(A, "x", "y"), placed(B, "y", None)
    found = xlamini.jit(xlamini.grad(lambda a, b: jnp.sum(jnp.sin(matmul(a, b))), (0, 1)))(a, b)
    slope = np.cos(A @ B)
    np.testing.assert_allclose(found[0], slope @ B.T, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[1], A.T @ slope, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(xlamini.grad(lambda x: jnp.sum(x * sort_rows(B.T)))(A), np.sort(B.T, -1))


def test_what_the_partition_function_raises_is_raised() -> None:
    found = custom_partitioning(lambda x: 2 * x)
    x = placed(A, "x", "y")

    def call(partition: Any) -> None:
        found.def_partition(partition, sharding_rule="i j -> i j")
        xlamini.jit(lambda x: found(x))(x)

    def failing(*_: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call(failing)
    with pytest.raises(TypeError, match=r"must return \(mesh, lower_fn, result_shardings, arg_shardings\), got 3"):
        call(lambda *_: 3)
    with pytest.raises(ValueError, match="Mismatch in result shapes: lower_fn of <lambda> returned float32"):
        call(lambda mesh, args, out: (mesh, lambda x: x[:1], out.sharding, (args[0].sharding,)))
    with pytest.raises(ValueError, match="Custom Partitioning rules must return Sharding: arg_shardings"):
        call(lambda mesh, args, out: (mesh, lambda x: x, out.sharding, (P("x"),)))
    with pytest.raises(TypeError, match="lower_fn of <lambda> takes a function"):
        call(lambda mesh, args, out: (mesh, 3, out.sharding, (args[0].sharding,)))
    call(twice)  # the failures leave nothing behind


def test_bad_calls() -> None:
    found = custom_partitioning(lambda x: 2 * x)
    with pytest.raises(ValueError, match=r"has no partition function yet; call <lambda>.def_partition"):
        found(A)
    found.def_partition(twice, infer_sharding_from_operands=lambda *_: None)
    with pytest.raises(NotImplementedError, match="callbacks instead of sharding_rule are provided"):
        found(A)
    with pytest.raises(ValueError, match=r"Unknown keyword arguments: {'k': 3}"):
        found.def_partition(twice, k=3)
    with pytest.raises(TypeError, match="sharding_rule must be a text such as"):
        found.def_partition(twice, sharding_rule=3)
    table = jnp.arange(16.0)
    closing = custom_partitioning(lambda x: x + table)
    closing.def_partition(twice, sharding_rule="i j -> i j")
    with pytest.raises(ValueError, match="closes over arrays; pass them as arguments"):
        closing(A)
    keywords = custom_partitioning(lambda x, *, n: x * n)
    keywords.def_partition(twice, sharding_rule="i j -> i j")
    with pytest.raises(TypeError, match=r"keyword arguments could not be resolved to positions: \['n'\]"):
        keywords(A, n=2)
    misfit = custom_partitioning(lambda x: x)
    misfit.def_partition(twice, sharding_rule="i -> i")
    with pytest.raises(ValueError, match="0th operand has rank 1, but the operation 0th operand has rank 2"):
        xlamini.jit(misfit)(placed(A, "x"))


def test_programs_are_reused(sort_rows: Any) -> None:
    x = placed(A, "x", None)
    divided = []

    def counting(*args: Any) -> Any:
        divided.append(args)
        return whole_rows(*args)

    sort_rows.def_partition(counting, sharding_rule="... i -> ... i")
    for _ in range(3):
        sort_rows(x)
    assert len(divided) == 1
