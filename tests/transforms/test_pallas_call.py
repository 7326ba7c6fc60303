"""Kernels on the CPU: values, derivatives and batches are those of the plain function; bad input is refused."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import ShapeDtypeStruct, lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu, triton as plt

F32 = "float32"


class Case(NamedTuple):
    """A kernel, the plain function that it computes, and the shapes of its operands."""

    kernel: Callable[..., Any]
    plain: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def _rows(size: int, width: int) -> pl.BlockSpec:
    return pl.BlockSpec((size, width), lambda i: (i, 0))


def _rms_norm() -> Case:
    def kernel(x: Any, g: Any, o: Any) -> None:
        v = x[...]
        o[...] = v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-6) * g[...]

    call = pl.pallas_call(
        kernel, ShapeDtypeStruct((10, 8), F32), grid=3, in_specs=[_rows(4, 8), pl.BlockSpec()], out_specs=_rows(4, 8)
    )
    return Case(call, lambda x, g: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g, ((10, 8), (1, 8)))


def _matmul() -> Case:
    def kernel(x: Any, y: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[...], y[...])

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = total[...]

    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((8, 4), F32),
        grid=(2, 1, 3),
        in_specs=[pl.BlockSpec((4, 2), lambda i, j, k: (i, k)), pl.BlockSpec((2, 4), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((4, 4), F32)],
    )
    return Case(call, lambda x, y: x @ y, ((8, 6), (6, 4)))


def _attention() -> Case:
    def kernel(q: Any, k: Any, v: Any, o: Any) -> None:
        def step(i: Any, carry: Any) -> Any:
            most, below, total = carry
            at = pl.ds(i * 2, 2)
            s = q[...] @ k[at, :].T
            new = jnp.maximum(most, s.max(1))
            p, old = jnp.exp(s - new[:, None]), jnp.exp(most - new)
            return new, below * old + p.sum(1), total * old[:, None] + p @ v[at, :]

        start = jnp.full(4, -1e30), jnp.zeros(4), jnp.zeros((4, 3))
        _, below, total = lax.fori_loop(0, 3, step, start)
        o[...] = total / below[:, None]

    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((8, 3), F32),
        grid=2,
        in_specs=[_rows(4, 3), pl.BlockSpec(), pl.BlockSpec()],
        out_specs=_rows(4, 3),
    )
    return Case(call, lambda q, k, v: xlamini.nn.softmax(q @ k.T, -1) @ v, ((8, 3), (6, 3), (6, 3)))


def _squeezed() -> Case:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] * y[0]

    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((3, 4), F32),
        grid=(3,),
        in_specs=[pl.BlockSpec((None, 4), lambda i: (i, 0)), pl.BlockSpec((1,), lambda i: (i,))],
        out_specs=pl.BlockSpec((pl.Squeezed(), pl.Blocked(4)), lambda i: (i, 0)),
    )
    return Case(call, lambda x, y: x * y[:, None], ((3, 4), (3,)))


def _neighbours() -> Case:
    def kernel(x: Any, o: Any) -> None:
        v = x[...]
        o[...] = v[:-2] + v[1:-1] + v[2:]

    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((8,), F32),
        grid=4,
        in_specs=[pl.BlockSpec((pl.Element(4),), lambda i: (2 * i,))],
        out_specs=pl.BlockSpec((2,), lambda i: (i,)),
    )
    return Case(call, lambda x: x[:-2] + x[1:-1] + x[2:], ((10,),))


def _in_place() -> Case:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[1] = jnp.sin(x[0]) * y[...]

    call = pl.pallas_call(kernel, ShapeDtypeStruct((3,), F32), input_output_aliases={0: 0})
    return Case(call, lambda x, y: jnp.asarray(x).at[1].set(jnp.sin(x[0]) * y), ((3,), ()))


def _two_results() -> Case:
    def kernel(tree: Any, total: Any, parts: Any) -> None:
        total[...] = tree["x"][...] + tree["y"][...]
        for i in range(2):
            parts[i, ...] = tree["x"][...] * tree["y"][i]

    shapes = ShapeDtypeStruct((2,), F32), ShapeDtypeStruct((2, 2), F32)
    call = pl.pallas_call(kernel, shapes)
    return Case(
        lambda x, y: jnp.concatenate([a.ravel() for a in call({"x": x, "y": y})]),
        lambda x, y: jnp.concatenate([x + y, (x * y[:, None]).ravel()]),
        ((2,), (2,)),
    )


CASES = {
    f.__name__[1:]: f()
    for f in (_rms_norm, _matmul, _attention, _squeezed, _neighbours, _in_place, _two_results)
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def _operands(case: Case, extra: tuple[int, ...] = ()) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((*extra, *shape)).astype(F32) for shape in case.shapes]


def _agree(found: Any, expected: Any) -> None:
    for x, y in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


def _loss(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: (fun(*args) ** 3).sum()


def test_values(case: Case) -> None:
    xs = _operands(case)
    _agree([case.kernel(*xs), xlamini.jit(case.kernel)(*xs)], [case.plain(*xs)] * 2)


def test_derivatives(case: Case) -> None:
    xs = _operands(case)
    places = tuple(range(len(xs)))
    grads = [xlamini.grad(_loss(f), places)(*xs) for f in (case.kernel, xlamini.checkpoint(case.kernel), case.plain)]
    _agree(grads[:2], [grads[2]] * 2)
    _agree(*(xlamini.jvp(f, xs, [np.cos(x) for x in xs]) for f in (case.kernel, case.plain)))


def test_batches_and_their_derivatives_in_both_orders(case: Case) -> None:
    xs, places = _operands(case, (3,)), tuple(range(len(case.shapes)))
    mapped, plain = (xlamini.vmap(xlamini.grad(_loss(f), places)) for f in (case.kernel, case.plain))
    _agree(mapped(*xs), plain(*xs))
    whole = xlamini.jit(xlamini.grad(lambda *args: xlamini.vmap(_loss(case.kernel))(*args).sum(), places))
    _agree(whole(*xs), plain(*xs))


def test_each_operand_may_be_mapped_alone(case: Case) -> None:
    for i in range(len(case.shapes)):
        xs, axes = _operands(case), [None] * len(case.shapes)
        axes[i] = xs[i].ndim
        xs[i] = np.stack([xs[i], 2 * xs[i]], -1)
        _agree(*(xlamini.vmap(f, axes)(*xs) for f in (case.kernel, case.plain)))


def test_a_batch_is_one_more_axis_of_the_grid() -> None:
    case = CASES["rms_norm"]
    program = xlamini.make_jaxpr(xlamini.vmap(case.kernel, (0, None)))(*_operands(case, (5,))[:1], np.ones((1, 8), F32))
    assert [str(eqn.primitive) for eqn in program.eqns] == ["pallas_call"]
    kernel = program.eqns[0].params["kernel"]
    assert kernel.grid == (5, 3)
    assert [block.shape for block in kernel.blocks] == [(4, 8), (1, 8), (4, 8)]


def test_arrays_that_stay_are_mapped_by_a_loop() -> None:
    def kernel(x: Any, o: Any) -> None:
        rows = pl.BlockSpec((2, 4), lambda i: (i, 0))
        pltpu.emit_pipeline(lambda x, o: o.set(2 * x[...]), grid=2, in_specs=[rows], out_specs=[rows])(x, o)

    where = pl.BlockSpec(memory_space=pltpu.ANY)
    call = pl.pallas_call(kernel, ShapeDtypeStruct((4, 4), F32), in_specs=[where], out_specs=where)
    x = np.arange(48, dtype=F32).reshape(3, 4, 4)
    _agree(xlamini.vmap(call)(x), 2 * x)
    assert str(xlamini.make_jaxpr(xlamini.vmap(call))(x).eqns[0].primitive) == "scan"


def test_forward_mode_is_a_kernel_with_refs_of_tangents() -> None:
    case = CASES["matmul"]
    xs = _operands(case)
    program = xlamini.make_jaxpr(lambda x, y, t: xlamini.jvp(lambda x: case.kernel(x, y), [x], [t]))(*xs, xs[0])
    assert [str(eqn.primitive) for eqn in program.eqns] == ["pallas_call"]
    kernel = program.eqns[0].params["kernel"]
    assert (kernel.grid, kernel.num_inputs, kernel.num_outputs, kernel.num_scratch) == ((2, 1, 3), 3, 2, 2)


def _while(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...]

    def body(count: Any) -> Any:
        o[...] = o[...] * y[...]
        return count - 1

    lax.while_loop(lambda count: count > 0, body, 2)


def _masked(x: Any, y: Any, o: Any) -> None:
    o[...] = y[...] * plt.load(x.at[...], mask=jnp.arange(4) < 3, other=0.5)


def _largest(x: Any, y: Any, o: Any) -> None:
    o[...] = y[...]
    plt.atomic_max(o, (slice(None),), x[...])


FORWARD = {
    "a loop that writes": (_while, lambda x, y: x * y * y, 1),
    "a masked load": (_masked, lambda x, y: y * jnp.where(jnp.arange(4) < 3, x, 0.5), 1),
    "an atomic maximum, by the scan": (_largest, jnp.maximum, 0),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name: str) -> None:
    kernel, plain, kernels = FORWARD[name]
    call = pl.pallas_call(kernel, ShapeDtypeStruct((4,), F32))
    x, y = np.array([1.5, -2, 3, 0.5], F32), np.array([2, 1, -1, 0.25], F32)
    _agree(*(xlamini.jvp(f, (x, y), (y, x)) for f in (call, plain)))
    program = xlamini.make_jaxpr(lambda *xs: xlamini.jvp(call, xs[:2], xs[2:]))(x, y, y, x)
    assert sum(str(eqn.primitive) == "pallas_call" for eqn in program.eqns) == kernels


def test_numbers_made_in_a_kernel_are_literals() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] % jnp.asarray(3, F32) + jnp.float32(1)

    _agree(pl.pallas_call(kernel, ShapeDtypeStruct((4,), F32))(np.arange(4, dtype=F32)), np.array([1, 2, 3, 1.0]))


def test_random_keys_in_a_kernel() -> None:
    def kernel(o: Any) -> None:
        o[...] = xlamini.random.normal(xlamini.random.fold_in(xlamini.random.key(0), pl.program_id(0)), (4,))

    call = pl.pallas_call(kernel, ShapeDtypeStruct((8,), F32), grid=2, out_specs=pl.BlockSpec((4,), lambda i: (i,)))
    keys = [xlamini.random.fold_in(xlamini.random.key(0), i) for i in range(2)]
    _agree(call(), np.concatenate([xlamini.random.normal(key, (4,)) for key in keys]))


def test_the_cost_of_a_derivative_by_the_scan_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamini.transforms.pallas.primitive.default_backend", lambda: "tpu")
    case = CASES["matmul"]
    with pytest.warns(UserWarning, match="the derivative of the kernel kernel runs as a loop of 6 programs"):
        xlamini.make_jaxpr(xlamini.grad(_loss(case.kernel)))(*_operands(case))


def test_prefetched_scalars_choose_blocks() -> None:
    def kernel(order: Any, x: Any, o: Any) -> None:
        o[...] = x[...] + order[pl.program_id(0)]

    spec = pltpu.PrefetchScalarGridSpec(
        1,
        grid=(3,),
        in_specs=[pl.BlockSpec((None, 2), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((None, 2), lambda i, order: (i, 0)),
    )
    call = pl.pallas_call(kernel, ShapeDtypeStruct((3, 2), F32), grid_spec=spec)
    order, x = np.array([2, 0, 1], np.int32), np.arange(6, dtype=F32).reshape(3, 2)
    _agree(call(order, x), x[order] + order[:, None])
    orders = np.stack([order, order[::-1]])
    _agree(xlamini.vmap(call, (0, None))(orders, x), np.stack([x[o] + o[:, None] for o in orders]))
    _agree(xlamini.vmap(call, (None, 0))(order, np.stack([x, 2 * x])), np.stack([call(order, x), call(order, 2 * x)]))


def test_equal_kernels_are_compiled_once() -> None:
    case = CASES["rms_norm"]
    xs, again = _operands(case), _rms_norm()
    kernels = [xlamini.make_jaxpr(f)(*xs).eqns[0].params["kernel"] for f in (case.kernel, again.kernel)]
    assert kernels[0] == kernels[1]
    assert hash(kernels[0]) == hash(kernels[1])
    other = xlamini.make_jaxpr(CASES["squeezed"].kernel)(*_operands(CASES["squeezed"])).eqns[0].params["kernel"]
    assert other != kernels[0]


def test_run_scoped_gives_memory_for_a_while() -> None:
    def kernel(x: Any, o: Any) -> None:
        def body(buffer: Any, count: Any) -> Any:
            buffer[...] = 2 * x[...]
            count[0] = 3
            return buffer[...] + count[0]

        o[...] = pl.run_scoped(body, pltpu.VMEM((4,), F32), count=pltpu.SMEM((1,), "int32"))

    _agree(pl.pallas_call(kernel, ShapeDtypeStruct((4,), F32))(jnp.ones(4)), np.full(4, 5.0))


def test_loop_and_kernel_are_decorators() -> None:
    @pl.kernel(out_type=ShapeDtypeStruct((6,), F32))
    def squares(x: Any, o: Any) -> None:
        @pl.loop(0, 6, step=2)
        def _(i: Any) -> None:
            o[i] = x[i] ** 2
            o[i + 1] = x[i + 1]

    x = np.arange(6, dtype=F32)
    _agree(squares(x), np.where(np.arange(6) % 2, x, x**2))


def test_estimates_count_loops() -> None:
    cost = pl.estimate_cost(lambda x: lax.fori_loop(0, 5, lambda i, x: jnp.sin(x), x), ShapeDtypeStruct((3,), F32))
    assert cost.transcendentals == 15
    assert cost.bytes_accessed == 24


def test_sizes() -> None:
    assert [pl.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [pl.align_to(n, 4) for n in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert [pl.next_power_of_2(n) for n in (0, 1, 2, 3, 5)] == [1, 1, 2, 4, 8]
    with pytest.raises(ValueError, match="next_power_of_2: x must be 0 or more, got -1"):
        pl.next_power_of_2(-1)


@pytest.mark.parametrize(("grid", "block"), [((), None), (1, (2, 3)), (2, (0, 3)), (1, (None, 3)), (0, (2, 3))])
def test_arrays_without_elements(grid: Any, block: Any) -> None:
    spec, x = pl.BlockSpec(block, lambda *ids: (*ids, 0) if ids else (0, 0)), np.ones((0, 3), F32)
    for interpret in (True, pltpu.InterpretParams()):
        call = pl.pallas_call(
            lambda x, o: o.set(2 * x[...]), ShapeDtypeStruct((0, 3), F32), grid=grid, in_specs=[spec], out_specs=spec,
            interpret=interpret,
        )  # fmt: skip
        assert call(x).shape == xlamini.grad(lambda x, call=call: call(x).sum())(x).shape == (0, 3)
    whole = pl.pallas_call(_copy, ShapeDtypeStruct((0, 3), F32))
    assert xlamini.vmap(whole)(np.ones((4, 0, 3), F32)).shape == (4, 0, 3)


# --- bad input


def _copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def _call(kernel: Callable[..., Any] = _copy, **options: Any) -> Any:
    return pl.pallas_call(kernel, ShapeDtypeStruct((4, 4), F32), **options)(np.ones((4, 4), F32))


_table = np.ones(4, F32)

BAD = {
    "rank": (
        lambda: _call(in_specs=[pl.BlockSpec((4,), lambda: (0,))]),
        r"the block shape \(4,\) of operand 0 has 1 dimensions, but the array is float32\[4,4\]",
    ),
    "few indices": (
        lambda: _call(grid=2, out_specs=pl.BlockSpec((2, 4), lambda i: i)),
        "the index map of result 0 returned 1 indices for 2 dimensions",
    ),
    "float index": (
        lambda: _call(grid=2, out_specs=pl.BlockSpec((2, 4), lambda i: (i * 1.0, 0))),
        r"the index map of result 0 returned float32\[\] as an index",
    ),
    "specs": (lambda: _call(in_specs=[pl.BlockSpec(), pl.BlockSpec()]), "in_specs has 2 specs for 1 arrays"),
    "no spec": (lambda: _call(in_specs=["x"]), "the spec of operand 0 must be a BlockSpec or None, got 'x'"),
    "order": (lambda: pl.BlockSpec(lambda i: i, (2, 2)), "the block's shape comes first, then the index map"),
    "closure": (
        lambda: _call(lambda x, o: o.set(x[...] + _table)),
        r"closes over float32\[4\]; pass it as an input of the kernel",
    ),
    "result": (lambda: _call(lambda x, o: x[...]), "write to its refs, and return None"),
    "operand": (lambda: _call(lambda x, o: x.set(o[...])), "writes to its operand 0; write to a result"),
    "size": (lambda: _call(out_specs=pl.BlockSpec((0, 4))), "has a size below 1"),
    "dynamic": (lambda: _call(grid=2.5), "the grid must be ints, got 2.5"),
    "axis": (lambda: _call(lambda x, o: o.set(x[...] * pl.program_id(0))), "axis 0 is not one of the 0 axes"),
    "outside": (lambda: pl.program_id(0), "program_id is only known inside of a kernel"),
    "scoped": (lambda: pl.run_scoped(print), "run_scoped is only known inside of a kernel"),
    "mesh": (lambda: pl.kernel(_copy, (), mesh=1), "a mesh of several cores is not built"),
    "bounded": (
        lambda: _call(in_specs=[pl.BlockSpec((pl.BoundedSlice(4), 4), lambda: (0, 0))]),
        "BoundedSlice, for operand 0, is not built",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, text = BAD[name]
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError), match=text):
        call()
