"""Executables and the C++ dispatch path, on hand-written StableHLO."""

from __future__ import annotations

import os
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from jaxlib._jax import JaxRuntimeError, PjitFunction
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo

from tests.runtime.test_runtime import run_python
from xlamini.core.errors import DeletedArrayError
from xlamini.core.flags import config
from xlamini.core.program.avals import ShapedArray
from xlamini.core.pytree import flatten
from xlamini.runtime.arrays.lifetime import explain_failure
from xlamini.runtime.arrays.to_device import device_put_value as put
from xlamini.runtime.devices.platforms import default_device, devices
from xlamini.runtime.execution import dispatch
from xlamini.runtime.execution.executable import compile_module
from xlamini.runtime.versions import DISPATCH_ERRORS

F3 = ShapedArray((3,), "float32")
I32 = ShapedArray((), "int32")
LEAF = flatten(0)[1]
_, NO_LEAVES = flatten(None)


def parse(text: str) -> ir.Module:
    context, dialects = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    context.append_dialect_registry(dialects)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    return ir.Module.parse(text, context)


def identity(kind: str) -> str:
    main = f"func.func public @main(%a: tensor<{kind}>) -> tensor<{kind}>"
    return f"module {{ {main} {{ return %a : tensor<{kind}> }} }}"


AVALS = {
    "f32": ShapedArray((), "float32"),
    "3xf32": F3,
    "3xbf16": ShapedArray((3,), ml_dtypes.bfloat16),
}


def sum_of(n, kind="3xf32", donate_first=False, **options):
    """An executable that adds n arrays up."""
    names = [f"%a{i}: tensor<{kind}>" for i in range(n)]
    names[0] += " {tf.aliasing_output = 0 : i32}" if donate_first else ""
    sums = ["%a0", *(f"%s{i}" for i in range(1, n))]
    body = [
        f"{sums[i]} = stablehlo.add {sums[i - 1]}, %a{i} : tensor<{kind}>\n" for i in range(1, n)
    ]
    main = f"func.func public @main({', '.join(names)}) -> tensor<{kind}>"
    text = f"module @sum {{ {main} {{ {''.join(body)} return {sums[-1]} : tensor<{kind}> }} }}"
    avals = [AVALS[kind]] * n
    return compile_module(
        parse(text), place=default_device(), in_avals=avals, out_avals=avals[:1], **options
    )


class Jitted:
    """A jitted function whose cache misses are counted and whose program is given."""

    def __init__(self, executable, kept=None, const_args=(), **options):
        self.executable, self.kept, self.const_args = executable, kept, list(const_args)
        self.misses = 0
        self.call = dispatch.cpp_jit("sum", lambda *args: "plain", self.miss, **options)

    def miss(self, *args, **kwargs):
        self.misses += 1
        leaves = [*self.const_args, *flatten((args, kwargs))[0]]
        leaves = [x for x in leaves if not isinstance(x, str)]
        kept = self.kept or [True] * len(leaves)
        arrays = self.executable.place([x for x, k in zip(leaves, kept, strict=True) if k])
        committed = any(getattr(x, "_committed", False) for x in leaves)
        (out,) = self.executable.call(arrays, committed)
        path = dispatch.fast_path(
            self.executable,
            LEAF,
            used_inputs=kept,
            const_args=self.const_args,
            leaves=leaves[len(self.const_args) :],
            committed=committed,
        )
        return out, path, False


def ones(scale=1.0):
    return put(np.full(3, scale, np.float32))


# Executables


def test_an_executable_places_runs_and_types_its_outputs():
    weak = ShapedArray((), "float32", True)
    executable = compile_module(
        parse(identity("f32")), place=devices()[0], in_avals=[weak], out_avals=[weak]
    )
    (out,) = executable.call(executable.place([2]), committed=True)
    assert out.aval is weak and out.item() == 2.0 and out.committed


def test_a_module_may_be_text():
    executable = compile_module(
        identity("i32"), place=devices()[0], in_avals=[I32], out_avals=[I32]
    )
    assert executable.call(executable.place([7]))[0].item() == 7


def test_an_executable_can_be_inspected():
    executable = sum_of(2)
    assert executable.cost_analysis()["flops"] == 3
    assert executable.memory_analysis().argument_size_in_bytes == 24
    assert "HloModule sum" in executable.as_text()
    assert len(executable.serialize()) > 100


def test_compiler_options_reach_xla():
    assert sum_of(2, compiler_options={"xla_backend_optimization_level": 1})
    with pytest.raises(JaxRuntimeError, match="No such compile option: 'speed'"):
        sum_of(2, compiler_options={"speed": 1})


def test_compiling_leaves_the_module_as_it_is():
    module = parse(identity("3xf32"))
    before = str(module)
    compile_module(module, place=devices()[0], in_avals=[F3], out_avals=[F3])
    assert str(module) == before


# The fast path


def test_the_second_call_stays_in_cpp():
    f = Jitted(sum_of(2))
    for _ in range(3):
        assert f.call(ones(), ones(2)).tolist() == [3, 3, 3]
    assert f.misses == 1
    assert f.call(ones(), ones()).aval is F3


def test_numpy_arguments_share_a_signature_and_are_narrowed():
    f = Jitted(sum_of(2))
    for dtype in (np.float32, np.float64):
        assert f.call(np.ones(3, dtype), np.ones(3, dtype)).tolist() == [2, 2, 2]
    assert f.misses == 1


def test_changing_a_numpy_argument_afterwards_does_not_matter():
    f, value = Jitted(sum_of(1)), np.zeros(3, np.float32)
    f.call(value)
    out = f.call(value)
    value[:] = 5
    assert out.tolist() == [0, 0, 0]


def test_python_scalars_numpy_scalars_and_arrays_are_different_signatures():
    f, x = Jitted(sum_of(2, "f32")), put(np.float32(1))
    for other in (2.0, np.float32(2), put(2.0), put(np.float32(2))):
        for _ in range(2):
            assert f.call(x, other).item() == 3.0
    assert f.misses == 4


def test_bfloat16_arguments():
    f, value = Jitted(sum_of(2, "3xbf16")), np.ones(3, ml_dtypes.bfloat16)
    for _ in range(2):
        assert f.call(put(value), value).dtype == ml_dtypes.bfloat16
    assert f.misses == 1


def test_keywords_and_static_arguments_are_part_of_the_signature():
    f = Jitted(sum_of(2), static_argnums=[0], static_argnames=["mode"])
    calls = [
        (("s", ones(), ones()), {}),
        (("t", ones(), ones()), {}),
        (("t", ones(), ones()), {"mode": "fast"}),
    ]
    for args, kwargs in calls + calls:
        assert f.call(*args, **kwargs).tolist() == [2, 2, 2]
    assert f.misses == 3


def test_hidden_constants_come_first_and_unused_arguments_are_dropped():
    f = Jitted(sum_of(3), kept=[True, True, False, True], const_args=[ones(10), ones(100)])
    unused = put(np.zeros(8))
    for _ in range(3):
        assert f.call(unused, ones()).tolist() == [111, 111, 111]
    assert f.misses == 1
    unused.delete()
    assert f.call(unused, ones(2)).tolist() == [112, 112, 112]


def test_a_constant_may_be_dropped_too():
    f = Jitted(sum_of(2), kept=[False, True, False, True], const_args=[put(1), ones(10)])
    assert [f.call(ones(5), ones()).tolist() for _ in range(2)] == [[11, 11, 11]] * 2
    assert f.misses == 1


def test_a_fast_path_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"1 inputs are used .* but the executable takes 2"):
        dispatch.fast_path(sum_of(2), LEAF, used_inputs=[True, False])
    with pytest.raises(ValueError, match="out_tree has 0 leaves"):
        dispatch.fast_path(sum_of(1), NO_LEAVES, used_inputs=[True])


def test_a_pytree_of_100_leaves():
    tree = {f"k{i}": put(np.full(3, i, np.float32)) for i in range(100)}
    f = Jitted(sum_of(100))
    for _ in range(2):
        assert f.call(tree).tolist() == [4950] * 3
    assert f.misses == 1


def test_donated_arguments_are_deleted_and_their_use_explained():
    f = Jitted(sum_of(2, donate_first=True, donated=[0]))
    for _ in range(2):
        x = ones()
        assert f.call(x, ones()).tolist() == [2, 2, 2]
        assert x.is_deleted()
    assert f.misses == 1
    with pytest.raises(DISPATCH_ERRORS) as raised:
        f.call(x, ones())
    assert isinstance(explain_failure(raised.value, [("x", x)]), DeletedArrayError)


def test_a_view_of_a_donated_array_keeps_its_value():
    f, x = Jitted(sum_of(2, donate_first=True)), ones()
    view = np.asarray(x)
    f.call(x, ones(5))
    assert view.tolist() == [1, 1, 1]


def test_an_array_donated_twice_in_one_call_is_explained():
    f, x = Jitted(sum_of(2, donate_first=True)), ones()
    with pytest.raises(DISPATCH_ERRORS) as raised:
        f.call(x, x)
    error = explain_failure(raised.value, [("x", x), ("y", x)])
    assert "x and y are the same array float32[3]" in str(error)


def test_flags_are_part_of_the_signature():
    f = Jitted(sum_of(2))
    f.call(ones(), ones())
    with config.enable_x64(True):
        f.call(ones(), ones())
        f.call(ones(), ones())
    assert f.misses == 2
    f.call(ones(), ones())
    assert f.misses == 2


def test_while_tracing_a_known_signature_is_a_miss():
    f = Jitted(sum_of(2))
    f.call(ones(), ones())
    config.tracing.set_local(True)
    try:
        f.call(ones(), ones())
    finally:
        config.tracing.set_local(False)
    assert f.misses == 2
    f.call(ones(), ones())
    assert f.misses == 2


def test_disable_jit_calls_the_function():
    f = Jitted(sum_of(2))
    with config.disable_jit(True):
        assert f.call(ones(), ones()) == "plain"


class Tracer:
    shape, dtype, weak_type = (3,), np.dtype("float32"), False


class Key:
    pass


@pytest.mark.parametrize(
    "stranger", [Tracer(), Key(), "text", len, 2**70, np.array(["a"])], ids=lambda x: type(x).__name__
)
def test_arguments_that_cpp_does_not_know_reach_cache_miss(stranger):
    seen = []

    def miss(x):
        seen.append(x)
        return "out", None, False

    f = dispatch.cpp_jit("f", miss, miss)
    assert (f(stranger), f(stranger)) == ("out", "out")
    assert all(x is stranger for x in seen) and len(seen) == 2


def test_calls_nest():
    inner = Jitted(sum_of(2))
    outer = dispatch.cpp_jit("outer", len, lambda x: (inner.call(inner.call(x, x), x), None, False))
    assert outer(ones()).tolist() == [3, 3, 3]
    assert inner.misses == 1


def test_a_failed_miss_passes_its_error_on_and_spoils_nothing():
    f = Jitted(sum_of(2))
    good, f.executable = f.executable, None
    with pytest.raises(AttributeError, match="place"):
        f.call(ones(), ones())
    f.executable = good
    f.call(ones(), ones())
    f.call(ones(), ones())
    assert f.misses == 2


def test_two_threads_compile_a_signature_once():
    f = Jitted(sum_of(2))
    outs = []
    threads = [
        threading.Thread(target=lambda: outs.append(f.call(ones(), ones()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outs) == 4 and f.misses == 1


def test_the_post_hook_sees_calls_on_the_fast_path():
    f, seen = Jitted(sum_of(2)), []
    f.call(ones(), ones())
    dispatch.post_hook.set_global(lambda *call: seen.append(call))
    try:
        out = f.call(ones(), ones())
    finally:
        dispatch.post_hook.set_global(None)
    ((function, args, kwargs, outputs),) = seen
    assert function is f.call and isinstance(function, PjitFunction)
    assert len(args) == 2 and kwargs == {} and outputs is out


@pytest.mark.full
def test_calls_go_where_the_committed_argument_is():
    code = """
import numpy as np
from tests.runtime.test_runtime_dispatch import Jitted, ones, sum_of, devices, put, config
first, second = devices()
with config.default_device(second):
    f = Jitted(sum_of(2))
there = put(np.ones(3), second)
for other in (ones(), ones(), np.ones(3)):
    out = f.call(other, there)
    assert out.device == second and out.committed and out.tolist() == [2, 2, 2]
assert f.misses == 2
"""
    assert run_python(code, XLAMINI_NUM_CPU_DEVICES="2", PYTHONPATH=os.pathsep.join(sys.path)) == ""
