"""What libraries do with JAX's inside: primitives, traces, functions of flat leaves, private names."""
from __future__ import annotations

import pytest

from tests.support.children import passes

PRIMITIVE = """
    import xlamini.as_jax
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
"""


@pytest.mark.full
def test_a_primitive_with_rules_of_both_kinds_of_lowering() -> None:
    passes(PRIMITIVE + """
    from jax.extend.mlir.dialects import hlo

    def made(lowering):
        p = Primitive("product")
        p.def_impl(lambda x, y: np.multiply(x, y))
        p.def_abstract_eval(lambda x, y: jax.core.ShapedArray(x.shape, x.dtype))
        mlir.register_lowering(p, lowering)
        ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
        batching.defbroadcasting(p)
        return p.bind

    table = jnp.arange(3.0)
    for product in (
        made(lambda ctx, x, y: [hlo.MulOp(x, y).result]),
        made(mlir.lower_fun(lambda x, y: x * y + table[0], multiple_results=False)),
    ):
        f = lambda x, y: product(jnp.sin(x), y)
        x, y, slope = 0.5, 3.0, np.cos(0.5) * 3.0
        assert type(product(np.float32(2), np.float32(3))) is np.float32
        np.testing.assert_allclose(jax.jit(f)(x, y), np.sin(x) * y, rtol=1e-6)
        for grad in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            np.testing.assert_allclose(grad(x, y), slope, rtol=1e-6)
        np.testing.assert_allclose(jax.grad(jax.grad(f))(x, y), -np.sin(x) * y, rtol=1e-6)
        both = jax.vmap(jax.grad(f, (0, 1)), (0, None))(jnp.array([x, 0.0]), y)
        np.testing.assert_allclose(both, [[slope, 3.0], [np.sin(x), 0.0]], rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(f, (0, None))(x, y).sum())(table)[0], 3.0, rtol=1e-6)
        np.testing.assert_allclose(jax.linearize(f, x, y)[1](1.0, 1.0), slope + np.sin(x), rtol=1e-6)
    """)


@pytest.mark.full
def test_a_lowering_that_calls_python() -> None:
    passes(PRIMITIVE + """
    def lowering(ctx, x, y):
        call = lambda x, y: (np.asarray(x) + 10 * np.asarray(y),)
        operands, avals = [x, y], ctx.avals_in
        outs, token, keepalive = mlir.emit_python_callback(
            ctx, call, None, operands, avals, ctx.avals_out, has_side_effect=False
        )
        ctx.module_context.add_keepalive(keepalive)
        assert ctx.module_context.platforms == ("cpu",) and token is None
        return outs

    p = Primitive("called")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y: [x])
    mlir.register_lowering(p, lowering)
    assert jax.jit(lambda x: p.bind(x, x + 1)[0] * 2)(jnp.arange(3.0)).tolist() == [20, 42, 64]

    """)


@pytest.mark.full
def test_a_lowering_for_one_platform() -> None:
    passes(PRIMITIVE + """
    def scaled(factor):
        return mlir.lower_fun(lambda x: factor * x, multiple_results=False)

    p = Primitive("placed")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, scaled(3), platform="gpu")
    try:
        jax.jit(lambda x: p.bind(x))(2.0)
    except NotImplementedError as caught:
        assert "'placed' has no lowering for the platform 'cpu'; give it one with register_lowering" in str(caught)
    mlir.register_lowering(p, scaled(5))
    assert jax.jit(lambda x: p.bind(x) + 1)(2.0) == 11
    mlir.register_lowering(p, scaled(7), platform="cpu")
    assert jax.jit(lambda x: p.bind(x) + 2)(2.0) == 16
    for_gpu = jax.export.export(jax.jit(lambda x: p.bind(x)), platforms=["cuda"])(2.0).mlir_module()
    assert "3.0" in for_gpu and "7.0" not in for_gpu
    """)


@pytest.mark.full
def test_rules_are_those_of_the_primitive_whoever_gave_them() -> None:
    passes(PRIMITIVE + """
    from xlamini import extend
    from jax.lax import mul_p, sin_p

    p = Primitive("scale")
    p.multiple_results = True
    p.def_effectful_abstract_eval(lambda x, factor: ([x], set()))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, factor: [factor * x]))
    ad.deflinear2(p, lambda cts, x, factor: p.bind(*cts, factor=factor))
    sizes = []

    def batch(size, name, trace, operands, dims, factor):
        sizes.append((size, name))
        return p.bind(*operands, factor=factor), dims

    batching.axis_primitive_batchers[p] = batch
    f = lambda x: p.bind(x, factor=3.0)[0]
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(f), axis_name="i"))(jnp.arange(2.0)), [3, 3])
    assert set(sizes) == {(2, "i")}
    assert p in extend.jvp_rule and sin_p in ad.primitive_jvps and p not in extend.cost_rule
    out, dim = batching.primitive_batchers[mul_p]((jnp.ones((2, 3)), jnp.full(3, 2.0)), (0, None))
    assert out.shape == (2, 3) and dim == 0 and float(out.sum()) == 12
    (out,), _ = batching.primitive_batchers[p]((jnp.ones(2),), (0,), factor=2.0)
    assert out.tolist() == [2, 2]
    """)


@pytest.mark.full
def test_a_jvp_tracer_is_what_has_a_tangent() -> None:
    passes(PRIMITIVE + """
    from jax.extend.core import find_top_trace
    from jax.interpreters import partial_eval as pe

    def f(x, y, n):
        top, of_x = find_top_trace((x, y)), isinstance(x, ad.JVPTracer)
        assert of_x and isinstance(2 * x, ad.JVPTracer) and (2 * x)._trace.main is top.main
        assert not any(isinstance(v, ad.JVPTracer) for v in (y, n, 1.0, jnp.ones(2), jax.lax.stop_gradient(x)))
        return x * y

    assert jax.grad(f)(2.0, 3.0, 1) == jax.jit(jax.grad(f))(2.0, 3.0, 1) == 3
    assert jax.vmap(jax.grad(f), (0, None, None))(jnp.ones(2), 3.0, 1).tolist() == [3, 3]
    assert jax.jit(lambda x: x * isinstance(x, ad.JVPTracer))(1.0) == 0
    assert jax.jit(lambda x: x * isinstance(x, pe.DynamicJaxprTracer))(1.0) == 1

    def inner(y):
        def g(x):
            assert find_top_trace((x,)) is not find_top_trace((y,))
            assert isinstance(y, ad.JVPTracer) and y._trace.main is not find_top_trace((x, y)).main
            return x * y
        return jax.grad(g)(1.0)

    assert float(jax.grad(inner)(3.0)) == 1
    """)


@pytest.mark.full
def test_symbolic_sizes_are_those_of_xlamini() -> None:
    passes("""
    import sys
    import xlamini.as_jax
    import jax, jax.numpy as jnp

    size, other = jax.export.symbolic_shape("(a, 2*b)", constraints=["a>=2"])
    program = jax.make_jaxpr(lambda x, y: x.sum() + y.size)(
        jax.ShapeDtypeStruct((size,), "float32"), jax.ShapeDtypeStruct((other,), "float32")
    )
    assert "f32[2*b]" in str(program)
    assert jax.export.is_symbolic_dim(size) and jax.export.export is xlamini.export.export
    assert jax.tree_util is sys.modules["jax.tree_util"] is xlamini.tree_util
    """)


@pytest.mark.full
def test_kernels_are_those_of_xlamini() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    import jax.experimental.pallas as pl
    import jax.experimental.pallas.triton as plt
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask

    mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((4, 4))] * 2)
    attend = splash_attention_kernel.make_splash_mha(mask, head_shards=1, q_seq_shards=1)
    assert attend(*[jnp.ones((2, 4, 8))] * 3).shape == (2, 4, 8)

    def double(x, o):
        o[...] = 2 * plt.load(x.at[:])

    out = jax.ShapeDtypeStruct((3,), jnp.float32)
    rows = pl.BlockSpec((1,), lambda i: (i,), memory_space=pltpu.VMEM)
    call = pl.pallas_call(double, out, grid=3, in_specs=[rows], out_specs=rows)
    assert call(jnp.ones(3)).tolist() == [2, 2, 2]
    assert pl is jax.experimental.pallas is xlamini.experimental.pallas and pl.tpu is pltpu and pl.triton is plt
    assert str(jax.make_jaxpr(call)(jnp.ones(3))).count("pallas_call") == 1

    for module, name in ((pl, "core_map"), (pltpu, "async_remote_copy"), (plt, "elementwise_inline_asm")):
        try:
            getattr(module, name)
            raise SystemExit(name)
        except AttributeError as error:
            assert repr(name) in str(error), error
    """)


@pytest.mark.full
def test_what_cannot_be_used_raises_when_it_is_made() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.core, jax.extend.core
    from jax.experimental import checkify, hijax
    from jax.interpreters import batching
    import jax.numpy as jnp

    class MyTracer(jax.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, value)

    class MyTrace(jax.core.Trace):
        pass

    class Odd:
        pass

    batching.register_vmappable(Odd, int, int, None, None, None)

    def error(fun):
        try:
            fun()
        except Exception as caught:
            return f"{type(caught).__name__}: {caught}"

    design = "xlamini has one tracer class and no stack of traces; write a transformation as a function of the jaxpr"
    for fun in (lambda: MyTracer(None, 1.0), MyTrace, jax.extend.core.TraceTag, jax.extend.core.take_current_trace):
        text = error(fun)
        assert text.startswith("TypeError") and design in text and "docs/dropin.md" in text, text
    assert "which register_vmappable was given, is not in xlamini: vmap maps all arrays of a pytree" in error(Odd)
    assert "write `def read_loval(self, state, val)` in the type" in error(
        lambda: hijax.MutableHiType().read_loval(None, None))
    assert checkify.checkify(jnp.log, checkify.nan_checks)(-1.0)[0].get().startswith("nan generated by primitive: log.")
    assert "not functionalized" in error(lambda: jax.jit(lambda x: checkify.check(x > 0, ""))(1.0))
    assert "x is -1 (`check` failed)" in error(lambda: checkify.check(jnp.array(-1) > 0, "x is {x}", x=jnp.array(-1)))
    assert error(lambda: checkify.check(True, "")) is None
    assert issubclass(checkify.JaxRuntimeError, ValueError)
    """)


@pytest.mark.full
def test_functions_of_flat_leaves_and_partly_known_ones() -> None:
    passes("""
    import xlamini.as_jax
    import jax, numpy as np, jax.numpy as jnp
    from jax.api_util import debug_info, flatten_fun, flatten_fun_nokwargs
    from jax.extend import linear_util as lu
    from jax.interpreters import partial_eval as pe

    @lu.transformation
    def doubled(factor, *args):
        out = yield [factor * x for x in args], {}
        yield [2 * x for x in out]

    @lu.transformation_with_aux2
    def counted(f, store, *args):
        store.store(len(args))
        return f(*args)

    fun = doubled(lu.wrap_init(lambda x, y, bias: [x + y + bias], {"bias": 1}), 10)
    fun, count = counted(fun)
    try:
        count()
    except lu.StoreException as caught:
        assert "has not run yet" in str(caught)
    assert fun.call_wrapped(1, 2) == [62] and count() == 2

    leaves, tree = jax.tree.flatten(((1.0, {"a": 2.0}), {"z": 3.0}))
    info = debug_info("test", len, (), {})
    flat, out_tree = flatten_fun(lu.wrap_init(lambda x, d, z: {"sum": x + d["a"] + z}, debug_info=info), tree)
    assert flat.call_wrapped(*leaves) == [6.0] and jax.tree.unflatten(out_tree(), [0]) == {"sum": 0}

    f, tree_of = flatten_fun_nokwargs(lu.wrap_init(lambda x, y: (x * 2, x * y)), jax.tree.structure((0, 0)))
    known, unknown = pe.PartialVal.known(jnp.array(3.0)), pe.PartialVal.unknown(jax.core.ShapedArray((), jnp.float32))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(f, [known, unknown])
    assert outs[0].is_known() and float(outs[0].get_known()) == 6 and outs[1][1] is None
    assert outs[1].get_aval() == jax.core.ShapedArray((), np.dtype("float32"))
    assert jax.core.eval_jaxpr(jaxpr, consts, 4.0) == [12.0]
    """)


@pytest.mark.full
def test_private_names_that_libraries_read() -> None:
    passes("""
    import xlamini.as_jax
    import numpy as np, jax, jax.numpy as jnp
    from jax._src.array import _reconstruct_array
    from jax._src.core import trace_state_clean
    from jax._src.distributed import global_state
    from jax._src.traceback_util import include_frame, register_exclusion
    from jax._src.tree_util import _registry
    from jax.extend.core import Effect, get_opaque_trace_state

    for value in (np.arange(3.0, dtype="float32"), np.ones(2, jnp.bfloat16), np.array(2.0, "float32")):
        array = _reconstruct_array(*value.__reduce__(), {"weak_type": value.ndim == 0})
        assert array.dtype == value.dtype and array.weak_type == (value.ndim == 0)
        np.testing.assert_array_equal(np.asarray(array, "float32"), value.astype("float32"))
    assert (global_state.process_id, global_state.client) == (0, None)
    assert dict in _registry and int not in _registry

    class Loud(Effect):
        pass

    assert Loud() == Loud() and Loud().name == "Loud"
    before, seen = get_opaque_trace_state(convention="test"), []
    assert trace_state_clean() and before == get_opaque_trace_state(convention="test")
    jax.eval_shape(lambda x: seen.append((trace_state_clean(), get_opaque_trace_state() == before)) or x, 1.0)
    assert seen == [(False, False)]

    code = compile("def library(x):\\n    return jnp.sin(x)\\n", "/library/inside.py", "exec")
    exec(code)
    register_exclusion("/library/")
    def user(x):
        return library(x)
    assert "(user)" in str(jax.make_jaxpr(user)(1.0).eqns[0].source_info.source)
    """)


@pytest.mark.full
def test_errors_of_a_tree_that_is_no_prefix() -> None:
    passes("""
    import xlamini.as_jax
    from jax._src.tree_util import prefix_errors

    assert prefix_errors({"a": 1}, {"a": [2, 3]}) == []
    (error,) = prefix_errors({"a": [1]}, {"a": 2})
    assert "in_axes['a'] is a list of length 1, but the full tree['a'] is a leaf of type int" in str(error("in_axes"))
    """)


@pytest.mark.full
def test_a_generator_of_ones_own() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    from jax.extend.random import define_prng_impl, seed_with_impl, threefry_prng_impl

    rules = dict(
        seed=lambda seed: jnp.full(3, seed, "uint32"),
        split=lambda key, shape: jnp.broadcast_to(key + 1, (*shape, 3)),
        random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
        fold_in=lambda key, data: key + data,
    )
    one, other = (define_prng_impl(key_shape=(3,), **rules) for _ in range(2))
    assert one != other
    key = jax.random.split(jax.random.key(7, impl=one))[0]
    assert jax.random.bits(key, (2,)).tolist() == [8, 8]
    assert jax.random.key_data(seed_with_impl(threefry_prng_impl, 5)).tolist() == [0, 5]
    try:
        define_prng_impl(key_shape=(3, 2), **rules)
    except NotImplementedError as error:
        assert "one dimension of words" in str(error)
    """)


@pytest.mark.full
def test_a_subclass_that_defines_its_implementation_and_types() -> None:
    passes(PRIMITIVE + """
    class Tag(Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("tag")
            mlir.register_lowering(self, mlir.lower_fun(lambda *xs, name: xs))
            ad.deflinear(self, lambda cts, name: cts)
            batching.primitive_batchers[self] = lambda xs, dims, name: (self.bind(*xs, name=name), dims)

        def impl(self, *xs, name):
            return xs

        def abstract_eval(self, *avals, name):
            return list(avals), jax.extend.core.no_effects

    tag = Tag()
    f = lambda x: sum(tag.bind(x, 2 * x, name="both"))
    assert type(tag.bind(np.float32(3), 1, name="")[0]) is np.float32
    assert f(2.0) == jax.jit(f)(2.0) == 6 and jax.grad(f)(2.0) == 3
    assert jax.jit(jax.vmap(jax.grad(f)))(jnp.ones(2)).tolist() == [3, 3]
    assert "tag[name=both]" in str(jax.make_jaxpr(f)(1.0))
    own = Primitive("own")
    own.def_impl(lambda x: x + 1)
    own.def_abstract_eval(lambda x: x)
    aval = jax.core.ShapedArray((), np.dtype("float32"))
    assert own.impl(1) == 2 and own.abstract_eval(aval) == (aval, frozenset())
    assert jax.lax.add_p.impl(1.0, 2.0) == 3 and jax.lax.add_p.abstract_eval(aval, aval)[0] == aval
    """)


@pytest.mark.full
def test_types_and_constants_in_a_lowering() -> None:
    passes(PRIMITIVE + """
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import hlo

    def lowering(ctx, x):
        number = mlir.ir_constant(np.float32(3.0))
        spread = hlo.broadcast_in_dim(mlir.aval_to_ir_type(ctx.avals_out[0]), number, mlir.dense_int_array([]))
        mask = mlir.ir_constant(np.array([True, False, True]))
        assert mlir.dtype_to_ir_type(np.dtype("int32")) == mlir.i32_attr(1).type == ir.IntegerType.get_signless(32)
        assert str(mlir.ir_attribute({"a": [1, True, "x"]})) == '{a = [1, true, "x"]}'
        ones = hlo.convert(x.type, mlir.ir_constant(np.ones(3, jnp.bfloat16)))
        return [hlo.multiply(hlo.select(mask, hlo.multiply(x, spread), x), ones)]

    p = Primitive("some_tripled")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lowering)
    assert jax.jit(p.bind)(jnp.arange(1.0, 4.0)).tolist() == [3, 2, 9]
    """)


@pytest.mark.full
def test_a_reduction_of_ones_own_is_batched() -> None:
    passes(PRIMITIVE + """
    p = Primitive("total")
    p.def_abstract_eval(lambda x, axes: jax.core.ShapedArray(tuple(np.delete(x.shape, axes)), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, axes: x.sum(axes), multiple_results=False))
    batching.defreducer(p)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for axis in range(3):
        mapped = jax.jit(jax.vmap(lambda x: p.bind(x, axes=(1,)), axis, -1))(x)
        np.testing.assert_array_equal(mapped, jax.vmap(lambda x: x.sum(1), axis, -1)(x))
    """)


LARGEST = PRIMITIVE + """
    import dataclasses
    from jax import lax
    from jax._src import core, dtypes, earray

    class Rules:
        def physical_element_aval(dtype):
            return core.ShapedArray((), dtype.float_dtype)
        def convert_from(dtype, other):
            return dtype.float_dtype == other
        def convert_to(other, dtype):
            return dtype.float_dtype == other
        def add(dtype, x, y):
            return to(lax.max(back(x), back(y)))
        def zero(dtype):
            return lax.convert_element_type(np.array(-np.inf, dtype.float_dtype), dtype)
        def tangent_dtype(dtype):
            return dtype

    class largest(dtypes.extended): pass

    @dataclasses.dataclass(frozen=True)
    class Largest(dtypes.ExtendedDType):
        float_dtype: dtypes.DType
        _rules: type = Rules
        type: type = largest
        name = property(lambda self: "largest")

    dtype = Largest(jnp.float32)
    to, back = lambda x: lax.convert_element_type(x, dtype), lambda x: lax.convert_element_type(x, jnp.float32)
"""


@pytest.mark.full
def test_a_dtype_whose_tangents_add_by_rules() -> None:
    passes(LARGEST + """
    def f(x):
        y = to(x)
        return lax.scan(lambda total, k: (total + k * back(y), None), 0.0, jnp.array([2.0, 7.0, 3.0]))[0]

    assert jax.dtypes.issubdtype(dtype, largest) and jax.dtypes.issubdtype(dtype, dtypes.extended)
    assert dtype == Largest(jnp.float32) and to(1.0).dtype == dtype
    assert f(2.0) == 24 and jax.grad(f)(2.0) == jax.jit(jax.grad(f))(2.0) == 7
    assert back(earray.EArray(core.ShapedArray((2,), dtype), jnp.arange(2.0))).tolist() == [0, 1]
    """)


@pytest.mark.full
def test_a_trace_takes_new_inputs() -> None:
    passes("""
    import xlamini.as_jax
    import jax, jax.numpy as jnp
    from jax._src.core import trace_ctx

    def f(x):
        trace = trace_ctx.trace
        assert trace.is_valid() and trace is x._trace.main and trace.parent_trace.parent_trace is None
        return x + trace.new_arg(jax.core.ShapedArray((2,), jnp.float32.dtype)).sum()

    closed = jax.make_jaxpr(f)(1.0)
    assert len(closed.in_avals) == 2 and jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0, jnp.ones(2)) == [3]
    try:
        trace_ctx.trace.new_arg(None)
    except TypeError as error:
        assert "nothing is traced" in str(error)
    """)
