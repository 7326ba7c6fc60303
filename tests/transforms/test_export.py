"""Exported functions: called again, differentiated, on several platforms, in files."""
from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from jaxlib.mlir import ir

import xlamini
from tests.golden.exported_program import ARGUMENTS, PLATFORMS, program
from tests.staging.test_saved import PROGRAMS, same
from tests.support.paths import GOLDEN, ROOT
from xlamini import export, lax, numpy as jnp, random, scipy, sharding, tree_util
from xlamini.errors import LoadError
from xlamini.lowering.mlir import Interned
from xlamini.runtime.files.portable import artifact_of
from xlamini.transforms.export import exported_file

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
EVERY = ("cpu", "cuda", "rocm", "tpu")


def exported(fun: Any, *args: Any, **options: Any) -> Any:
    return export.export(xlamini.jit(fun), **options)(*args)


def again(found: Any, vjp_order: int = 0) -> Any:
    return export.deserialize(found.serialize(vjp_order=vjp_order))


def by_numbers(fun: Any, *args: Any) -> Any:
    """The branches that a module chooses among: how many `case` over the platform's number it has."""
    return exported(fun, *args, platforms=("cpu", "cuda", "tpu")).mlir_module().count('"stablehlo.case"(%arg0)')


# Called again.


@pytest.mark.sample(4)
@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_as_before(name: str, platforms: tuple[str, ...]) -> None:
    fun, args = PROGRAMS[name]
    found = exported(fun, *args, platforms=platforms)
    wanted = xlamini.jit(fun)(*args)
    same(found.call(*args), wanted)
    same(xlamini.jit(again(found).call)(*args), wanted)


def test_what_is_known_of_it() -> None:
    # The values are JAX's for the same program.
    found, aval = exported(lambda x, y=1.0: jnp.sin(x) * y, X), xlamini.typeof(jnp.asarray(X))
    assert (found.fun_name, str(found.in_tree), str(found.out_tree)) == (
        "<lambda>", "PyTreeDef(((*,), {}))", "PyTreeDef(*)"
    )  # fmt: skip
    assert (found.in_avals, found.out_avals) == ((aval,), (aval,))
    assert (found.platforms, found.nr_devices, found.calling_convention_version) == (("cpu",), 1, 10)
    assert (found.ordered_effects, found.unordered_effects, found.disabled_safety_checks) == ((), (), ())
    assert (found.module_kept_var_idx, found.uses_global_constants) == ((0,), False)
    assert (found.in_shardings_hlo, found.out_shardings_hlo) == ((None,), (None,))
    assert str(found) == "Exported(fun_name=<lambda>, ...)"
    assert export.default_export_platform() == "cpu"
    versions = export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
    assert versions == (9, 10)
    assert "stablehlo.sine" in found.mlir_module() and found.mlir_module_serialized.startswith(b"ML\xefR")


def test_types_without_values_are_enough() -> None:
    found = exported(jnp.sin, xlamini.ShapeDtypeStruct((2, 3), "float32"))
    same(found.call(X), jnp.sin(X))


def test_unused_arguments_are_not_in_the_module() -> None:
    found = exported(lambda x, y, z: (x + z, y.shape[0]), X, X, 2.0)
    assert found.module_kept_var_idx == (0, 2) and "%arg2" not in found.mlir_module()
    same(found.call(X, X, 2.0), xlamini.jit(lambda x, y, z: (x + z, y.shape[0]))(X, X, 2.0))


def test_captured_arrays_are_in_the_module() -> None:
    table, key = jnp.arange(6.0).reshape(2, 3).astype("bfloat16"), random.key(2)
    found = again(exported(lambda i: (table[i], random.uniform(key, (2,)), table.T), 1))
    same(found.call(1), (table[1], random.uniform(key, (2,)), table.T))


def test_static_arguments_and_keywords() -> None:
    function = xlamini.jit(lambda x, n, *, scale: {"y": x * n + scale}, static_argnums=1)
    found = again(export.export(function)(X, 3, scale=1.0))
    same(found.call(X, scale=1.0), function(X, 3, scale=1.0))


@pytest.mark.full
def test_it_runs_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "step.bin"
    path.write_bytes(exported(factor, X, platforms=PLATFORMS).serialize(vjp_order=1))
    code = (
        "import sys, pathlib, numpy, xlamini\nfrom xlamini import export\n"
        "step = export.deserialize(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "x = numpy.linspace(-1, 1, 6, dtype='float32').reshape(2, 3)\n"
        "found = xlamini.grad(lambda x: step.call(x).sum())(x)\n"
        "print(found.tobytes().hex())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = xlamini.grad(lambda x: factor(x).sum())(X)
    np.testing.assert_allclose(np.frombuffer(bytes.fromhex(run.stdout), np.float32), wanted.ravel(), rtol=1e-5)


def factor(x: Any) -> Any:
    """It calls a kernel, which a process that has lowered no such operation does not know yet."""
    return jnp.linalg.cholesky(jnp.tanh(x) @ x.T + 3 * jnp.eye(2))


# In other programs.


def test_it_is_part_of_other_programs() -> None:
    double = exported(lambda x: x * 2, X[0])
    table = jnp.asarray(X)
    same(lax.map(double.call, table), table * 2)
    same(lax.scan(lambda c, x: (double.call(c) + x, c), table[0], table), lax.scan(
        lambda c, x: (c * 2 + x, c), table[0], table))  # fmt: skip
    same(lax.cond(True, double.call, lambda x: x, table[0]), table[0] * 2)
    same(xlamini.jit(lambda x: double.call(double.call(x)))(X[0]), table[0] * 4)
    jaxpr = str(xlamini.make_jaxpr(double.call)(X[0]))
    assert "call_exported[" in jaxpr and "platforms=('cpu',)" in jaxpr


def test_functions_are_kept_apart() -> None:
    """Names of functions in both modules do not meet, and a module called twice is there once."""
    helper = xlamini.jit(lambda x: x + 1)
    first = exported(lambda x: helper(helper(x) * 2), 1.0)
    program = xlamini.jit(lambda x: helper(first.call(x)) + first.call(helper(x)))
    assert float(program(1.0)) == (2 * 2 + 1) + 1 + (3 * 2 + 1)
    text = program.lower(1.0).as_text()
    assert len(re.findall(r"func.func private @\S*main", text)) == 1


def test_exported_functions_in_exported_functions() -> None:
    inner = exported(lambda x: jnp.sort(jnp.sin(x)), X[0], platforms=EVERY)
    outer = again(exported(lambda x: inner.call(x) * 2, X[0], platforms=("tpu", "cpu")))
    same(outer.call(X[0]), jnp.sort(jnp.sin(X[0])) * 2)


def test_it_is_kept_on_disk(tmp_path: Path, no_cache: None) -> None:
    xlamini.config.update("compilation_cache_dir", str(tmp_path))
    found = exported(lambda x: x * 5, 1.0)
    for read in (again(found), again(found)):
        assert float(xlamini.jit(lambda x, p=read: p.call(x) + 1)(2.0)) == 11
    assert len(list(tmp_path.iterdir())) >= 1


# Derivatives.

SCALE = np.array([1.0, 2.0, 3.0], np.float32)


def model(p: Any, n: Any) -> Any:
    return {"y": jnp.sin(p["x"]) * SCALE * n, "n": n + 1}


def loss_of(call: Any) -> Any:
    return lambda x: jnp.sum(call({"x": x}, 3)["y"] ** 3)


@pytest.mark.full
@pytest.mark.parametrize("restored", [False, True])
def test_derivatives_up_to_order_three(restored: bool) -> None:
    found = exported(model, {"x": X[0]}, 3, platforms=("cuda", "cpu"))
    ours, wanted = loss_of((again(found, 3) if restored else found).call), loss_of(model)
    for _ in range(3):
        ours = (lambda f: lambda x: jnp.sum(xlamini.grad(f)(x)))(ours)
        wanted = (lambda f: lambda x: jnp.sum(xlamini.grad(f)(x)))(wanted)
        np.testing.assert_allclose(ours(X[0]), wanted(X[0]), rtol=2e-5)
        np.testing.assert_allclose(xlamini.jit(ours)(X[0]), wanted(X[0]), rtol=2e-5)


def test_the_pullback() -> None:
    # The types are JAX's for the same program.
    found = exported(lambda x, n: x * n, 1.0, 3)
    pullback = found.vjp()
    assert found.has_vjp() and not again(found).has_vjp() and again(found, 1).has_vjp()
    assert [str(a) for a in pullback.in_avals] == ["~float32[]", "~int32[]", "~float32[]"]
    assert pullback.out_avals[0].dtype == np.float32
    assert pullback.out_avals[1].dtype == xlamini.float0
    assert (str(pullback.in_tree), str(pullback.out_tree)) == ("PyTreeDef(((*, *, *), {}))", "PyTreeDef((*, *))")
    value, nothing = pullback.call(2.0, 3, 1.0)
    assert (float(value), nothing.dtype) == (3.0, xlamini.float0)
    assert float(xlamini.grad(lambda x: found.call(x, 3))(1.0)) == 3.0


def test_derivatives_with_keys_and_constants() -> None:
    found = again(exported(lambda k, x: (random.split(k), random.normal(k, (3,)) * x * SCALE), random.key(1), 2.0), 1)
    gradient = xlamini.jit(xlamini.grad(lambda x: found.call(random.key(1), x)[1].sum()))(2.0)
    np.testing.assert_allclose(gradient, (random.normal(random.key(1), (3,)) * SCALE).sum(), rtol=1e-6)


def test_derivatives_of_composed_programs() -> None:
    found = again(exported(lambda x: jnp.sum(jnp.tanh(x)), X[0]), 1)
    rows = xlamini.grad(lambda x: lax.map(found.call, x).sum())(X)
    np.testing.assert_allclose(rows, 1 - np.tanh(X) ** 2, rtol=1e-5)
    value, gradient = xlamini.value_and_grad(lambda x: found.call(x) * 2)(X[0])
    np.testing.assert_allclose(value, 2 * np.tanh(X[0]).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 - 2 * np.tanh(X[0]) ** 2, rtol=1e-5)
    same(again(exported(xlamini.vmap(xlamini.grad(lambda x: x**3)), X[0])).call(X[0]), xlamini.jit(
        xlamini.vmap(xlamini.grad(lambda x: x**3)))(X[0]))  # fmt: skip


def test_what_has_no_derivative() -> None:
    found = exported(jnp.sin, 1.0)
    with pytest.raises(ValueError, match="was serialized without its derivative; give serialize a vjp_order"):
        xlamini.grad(again(found).call)(1.0)
    with pytest.raises(ValueError, match="vjp_order"):
        xlamini.grad(xlamini.grad(again(found, 1).call))(1.0)
    with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\)"):
        xlamini.jvp(found.call, (1.0,), (1.0,))


# Several platforms.


def test_operations_that_are_the_same_everywhere_have_no_choice() -> None:
    assert by_numbers(lambda x: jnp.sum(jnp.exp(x) @ x.T, axis=0), X) == 0
    assert by_numbers(lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x), X) == 0
    assert by_numbers(lambda k: random.normal(k, (3,)), random.key(0)) == 0


def test_operations_that_differ_have_one() -> None:
    assert by_numbers(lambda x: jnp.linalg.cholesky(x @ x.T) + x[0, 0], X) == 1
    assert by_numbers(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos) * 2, X) == 1
    text = exported(lambda x: jnp.linalg.cholesky(x @ x.T), X, platforms=("cpu", "cuda", "tpu")).mlir_module()
    assert all(kernel in text for kernel in ("lapack_spotrf_ffi", "cusolver_potrf_ffi", "stablehlo.cholesky"))
    assert 'jax.global_constant = "_platform_index"' in text


def where(x: Any) -> Any:
    return lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x + 2, default=lambda x: x + 3)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "fun",
    [
        where,
        lambda x: xlamini.jit(where)(x) + xlamini.jit(where)(x * 2),
        lambda x: lax.scan(lambda c, _: (where(c), c), x, None, length=3)[0],
        lambda x: lax.while_loop(lambda c: c.sum() < 9, where, x),
        lambda x: lax.cond(x[0] > 0, where, lambda x: x, x),
        lambda x: xlamini.checkpoint(where)(x),
        lambda x: xlamini.vmap(where)(x),
        lambda x: jnp.sort(jnp.repeat(x, 4000)),
        lambda x: jnp.linalg.svd(x.reshape(1, 3) + jnp.eye(3))[1],
        lambda x: jnp.cumsum(jnp.repeat(x, 40000)),
        lambda x: jnp.sin(jnp.repeat(x, 40000)) + jnp.arctan2(x[0], x[1]),
        lambda x: lax.top_k(jnp.repeat(x, 5000), 3)[0] + lax.approx_max_k(x, 3)[0],
    ],
)
def test_choices_wherever_they_stand(fun: Any) -> None:
    found = exported(fun, X[0], platforms=("tpu", "cuda", "cpu"))
    assert found.uses_global_constants
    same(found.call(X[0]), xlamini.jit(fun)(X[0]))
    same(again(found).call(X[0]), xlamini.jit(fun)(X[0]))


@pytest.mark.full
def test_kernels_of_other_platforms_are_not_looked_for() -> None:
    """XLA finds that a branch is dead only after it has looked for its kernels, where it stands in an inner choice."""
    found = exported(lambda x: scipy.linalg.expm(x), X[:, :2], platforms=("tpu", "cuda", "cpu"))
    close(found.call(X[:, :2]), scipy.linalg.expm(X[:, :2]))
    lowered = xlamini.jit(found.call).lower(X[:, :2]).as_text()
    assert "lapack_sgetrf_ffi" in lowered and "LuDecomposition" not in lowered and "cusolver" not in lowered


def test_functions_that_nobody_calls_are_left_out() -> None:
    text = exported(lambda x: xlamini.jit(where)(x), X[0], platforms=EVERY).mlir_module()
    assert len(re.findall(r"func\.func private @\S*where", text)) == 1


def test_composites_become_calls() -> None:
    found = exported(lax.composite(lambda x: where(x) * 2, "mine.twice"), X[0], platforms=("tpu", "cpu"))
    assert "stablehlo.composite" not in found.mlir_module()
    same(found.call(X[0]), (jnp.asarray(X[0]) + 1) * 2)


def test_a_mesh_of_one_device() -> None:
    mesh = sharding.Mesh(np.array(xlamini.devices()[:1]), ("x",))
    place = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
    for found in (
        exported(lambda x: lax.with_sharding_constraint(x, place) * 2, X),
        again(exported(lambda x: x * 2, xlamini.device_put(X, place))),
        exported(lambda x: x * 2, X),
    ):
        assert found.nr_devices == 1
        for x in (X, xlamini.device_put(X, place)):
            same(found.call(x), jnp.asarray(X) * 2)


def test_the_names_in_the_module() -> None:
    # As in JAX for the same program.
    text = exported(lambda p, y: {"a": p["w"][0] * y, "b": (y, 1)}, {"w": [1.0, 2.0]}, 3.0).mlir_module()
    line = text.partition("@main")[2].partition("\n")[0]
    names = re.findall(r'loc\("([^"]*)"\)[,)]|jax.result_info = "([^"]*)"', line)
    assert [a or b for a, b in names] == ["p['w'][0]", "y", "result['a']", "result['b'][0]", "result['b'][1]"]
    odd = exported(lambda p: {"\ud800": p["\ud800"] * 2}, {"\ud800": 1.0})
    assert float(odd.call({"\ud800": 3.0})["\ud800"]) == 6.0


def test_functions_of_the_library_need_no_jit() -> None:
    found = export.export(jnp.cos)(1.0)
    assert (found.fun_name, found.calling_convention_version) == ("cos", 10)
    same(found.call(2.0), jnp.cos(2.0))


def test_the_platform_is_checked() -> None:
    found = exported(lambda x: x * 2, 1.0, platforms=("tpu", "cuda"))
    with pytest.raises(ValueError, match=r"was exported for tpu, cuda, but is called on cpu; .*'tpu', 'cuda', 'cpu'"):
        found.call(1.0)
    anywhere = again(exported(
        lambda x: x * 2, 1.0, platforms=("tpu",), disabled_checks=[export.DisabledSafetyCheck.platform()]
    ))  # fmt: skip
    assert float(anywhere.call(2.0)) == 4.0


def test_kernels_are_checked() -> None:
    check = export.DisabledSafetyCheck.custom_call("dce_sink")
    assert (str(check), check.is_custom_call(), export.DisabledSafetyCheck.platform().is_custom_call()) == (
        "custom_call:dce_sink", "dce_sink", None
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"kernels that later versions may not have: dce_sink; .*custom_call"):
        exported(sunk, X)
    made = exported(sunk, X, disabled_checks=[check]).serialize()
    assert export.deserialize(made, trusted=True).disabled_safety_checks == (check,)


def sunk(x: Any) -> Any:
    lax.dce_sink(x, prevent_mlir_dce=True)
    return x


# Files.


class Pair(NamedTuple):
    a: Any
    b: Any


def test_structures_with_classes_of_their_own() -> None:
    found = exported(lambda p: Pair(p.b, p.a), Pair(1.0, 2))
    same(found.call(Pair(1.0, 2)), xlamini.jit(lambda p: Pair(p.b, p.a))(Pair(1.0, 2)))
    with pytest.raises(ValueError, match=r"a \S*test_export.Pair cannot be written .*register_namedtuple"):
        found.serialize()
    export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
    same(again(found).call(Pair(1.0, 2)), found.call(Pair(1.0, 2)))


@pytest.fixture(scope="module")
def blob() -> bytes:
    return bytes(exported(lambda x: x * 2, 1.0).serialize())


def changed(blob: bytes, **changes: Any) -> bytes:
    header, body = exported_file.FILE.unpacked(blob)
    return exported_file.FILE.packed({**header, **changes}, body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b"", "does not begin as a file of Exported.serialize"),
        (lambda b: b[:400], "has another checksum than it should"),
        (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "has another checksum than it should"),
        (lambda b: b.replace(b"format 1", b"format 5", 1), "it is in format 5, not 4"),
        (lambda b: b.replace(b"format 1", b"format 2", 1), "has a header that is not complete"),
        (lambda b: changed(b, convention=11), "has calling convention 11, but here are 9 to 10; .* by xlamini"),
        (lambda b: changed(b, in_avals=[["float99", [], False]]), "deserialize: "),
        (lambda b: changed(b, in_avals=None), "has a header whose field 'in_avals' cannot be 'None'"),
        (lambda b: changed(b, in_avals=[3]), "its header cannot be read"),
        (lambda b: changed(b, in_avals=[["float32", ["b"], False]]), "'b' is no size of an array"),
        (lambda b: changed(b, in_avals=[["float32", [-1], False]]), "-1 is no size of an array"),
        (lambda b: changed(b, in_avals=[["float32", [True], False]]), "True is no size of an array"),
        (lambda b: changed(b, in_avals=[["int32", [], False]]), "other argument or result types than the header says"),
        (lambda b: changed(b, out_avals=[["float32", [3], False]]), "other argument or result types than the header"),
        (lambda b: changed(b, kept=[3]), "does not fit its 1 arguments"),
        (lambda b: changed(b, kept=[True]), "its header cannot be read"),
        (lambda b: changed(b, names=[]), "does not fit its 1 arguments"),
        (lambda b: changed(b, platforms=[]), "does not fit its 1 arguments"),
        (lambda b: changed(b, in_tree=None), "is not the structure of the 1 arrays"),
        (lambda b: changed(b, sizes=[1]), "has a body of another size"),
        (lambda b: changed(b, sizes=["1"]), "has a header with sizes that are none"),
        (lambda b: changed(b, in_tree={"node": ["never registered", "", []]}), "'never registered', which is not"),
        (lambda b: xlamini.jit(jnp.sin).lower(1.0).compile().serialize(), "does not begin as a file of Exported"),
    ],
)
def test_files_that_are_none(blob: bytes, change: Any, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        export.deserialize(change(blob))


def test_stablehlo_that_is_none(blob: bytes) -> None:
    header, _ = exported_file.FILE.unpacked(blob)
    for trusted in (False, True):
        with pytest.raises(LoadError, match="deserialize: <lambda>: the StableHLO cannot be read by this jaxlib"):
            export.deserialize(exported_file.FILE.packed({**header, "sizes": [4]}, b"code"), trusted=trusted)


def test_a_body_is_decompressed_no_further_than_its_header_says(blob: bytes) -> None:
    header, _ = exported_file.FILE.unpacked(blob)
    zeros = exported_file.FILE.packed({**header, "sizes": [8]}, bytes(2**26))
    tracemalloc.start()
    with pytest.raises(LoadError, match="has a body of another size than its header says"):
        export.deserialize(zeros)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_kernels_of_others_are_not_called(blob: bytes) -> None:
    kernel = "xla_ffi_python_cpu_callback"
    text = f"""
        func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
          %y = stablehlo.custom_call @{kernel}(%x) {{api_version = 4 : i32}} : (tensor<f32>) -> tensor<f32>
          return %y : tensor<f32>
        }}"""
    header, _ = exported_file.FILE.unpacked(blob)
    with Interned().context as context, ir.Location.unknown(context):
        code = artifact_of(ir.Module.parse(text))
    header = {**header, "sizes": [len(code)], "checks": [f"custom_call:{kernel}"]}
    made = exported_file.FILE.packed(header, code)
    with pytest.raises(LoadError, match=f"kernels without a stable interface, {kernel}; .* pass trusted=True"):
        export.deserialize(made)
    assert export.deserialize(made, trusted=True).disabled_safety_checks
    with pytest.raises(LoadError, match="kernels without a stable interface"):
        export.deserialize(exported_file.FILE.packed({**header, "checks": []}, code), trusted=True)


# Files of other versions, recorded by tests/golden/record_exported.py.

EXPORTED = GOLDEN / "exported"


@pytest.mark.full
def test_a_file_of_format_1_is_read() -> None:
    found = export.deserialize((EXPORTED / "format_1.xlamini").read_bytes())
    wanted = program(xlamini)
    assert (found.platforms, found.module_kept_var_idx) == (PLATFORMS, (0, 2))
    close(found.call(*ARGUMENTS), wanted(*ARGUMENTS))
    gradient = xlamini.grad(lambda x: found.call(x, *ARGUMENTS[1:])["factor"].sum())(ARGUMENTS[0])
    close(gradient, xlamini.grad(lambda x: wanted(x, *ARGUMENTS[1:])["factor"].sum())(ARGUMENTS[0]))


@pytest.mark.full
def test_the_stablehlo_of_jax_is_called_in_the_same_way() -> None:
    ours = exported(program(xlamini), *ARGUMENTS, platforms=PLATFORMS)
    of_jax = dataclasses.replace(ours, mlir_module_serialized=(EXPORTED / "by_jax_0.10.2.mlirbc").read_bytes())
    close(of_jax.call(*ARGUMENTS), ours.call(*ARGUMENTS))


def close(found: Any, wanted: Any) -> None:
    assert tree_util.tree_structure(found) == tree_util.tree_structure(wanted)
    for a, b in zip(tree_util.tree_leaves(found), tree_util.tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
