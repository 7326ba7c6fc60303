"""The stages of a jitted function: what each tells, and the calls that a compiled one takes and refuses.

The expected texts of attributes are what JAX 0.10.2 gives for the same program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import stages, tree
from xlamini.errors import DeletedArrayError, JaxRuntimeError


def fun(x: Any, y: Any, *, k: Any = 1.0) -> Any:
    return {"s": x + y["w"].sum() * k, "p": jnp.sin(x)}


def arguments() -> tuple[Any, Any]:
    return jnp.ones(3), {"w": jnp.ones((2, 2))}


def traced(**options: Any) -> Any:
    return xlamini.jit(fun, **options).trace(*arguments(), k=2.0)


def every_stage() -> list[Any]:
    first = traced(donate_argnums=0)
    lowered = first.lower()
    return [first, lowered, lowered.compile()]


@pytest.mark.parametrize("number", range(3), ids=["traced", "lowered", "compiled"])
def test_what_all_stages_tell(number: int) -> None:
    stage = every_stage()[number]
    assert repr(stage.args_info) == (
        "((ArgInfo(_aval=ShapedArray(float32[3]), donated=True), {'w': ArgInfo(_aval=ShapedArray(float32[2,2]), "
        "donated=False)}), {'k': ArgInfo(_aval=ShapedArray(float32[], weak_type=True), donated=False)})"
    )
    assert repr(stage.in_avals) == (
        "((ShapedArray(float32[3]), {'w': ShapedArray(float32[2,2])}), {'k': ShapedArray(float32[], weak_type=True)})"
    )
    assert str(stage.in_tree) == "PyTreeDef(((*, {'w': *}), {'k': *}))"
    assert str(stage.out_tree) == "PyTreeDef({'p': *, 's': *})"
    assert stage.donate_argnums == (0,)
    assert [(name, info.shape, info.dtype) for name, info in sorted(stage.out_info.items())] == [
        ("p", (3,), np.float32),
        ("s", (3,), np.float32),
    ]
    assert repr(stage).endswith(" fun(x: float32[3], y['w']: float32[2,2], k: float32[])>")


def test_an_argument_s_type() -> None:
    info = stages.ArgInfo(xlamini.typeof(np.ones((2, 3), np.float32)), True)
    assert (info.shape, info.dtype, info.donated) == ((2, 3), np.float32, True)
    assert tree.leaves([info]) == [info]


def test_donated_leaves_are_numbered() -> None:
    def program(x: Any, y: Any, n: int, z: Any) -> Any:
        return x["a"] + z, x["b"] * n

    jitted = xlamini.jit(program, static_argnums=2, donate_argnums=(0, 3))
    with pytest.warns(UserWarning, match="of no use"):
        lowered = jitted.lower({"a": jnp.ones(3), "b": jnp.ones(2)}, 1.0, 3, jnp.ones(3))
    assert lowered.donate_argnums == (0, 1, 3)
    unused = lowered.compile().input_shardings[0][1]
    assert unused is None


def test_traced() -> None:
    stage = traced()
    assert stage.fun_name == "fun"
    assert repr(stage.out_avals) == "{'p': ShapedArray(float32[3]), 's': ShapedArray(float32[3])}"
    assert isinstance(stage, stages.Traced) and isinstance(stage, stages.Stage)
    assert len(stage.jaxpr.eqns) == 5 and stage.jaxpr.consts == []


def test_texts_of_the_lowered() -> None:
    lowered = traced().lower()
    assert lowered.as_text() == lowered.as_text("stablehlo") == str(lowered.compiler_ir())
    assert "stablehlo.sine" in lowered.as_text() and "loc(" not in lowered.as_text()
    assert "loc(" in lowered.as_text(debug_info=True) and "test_stages.py" in lowered.as_text(debug_info=True)
    hlo = lowered.as_text("hlo")
    assert hlo.startswith("HloModule jit_fun") and "metadata" not in hlo
    assert "metadata" in lowered.as_text("hlo", debug_info=True)
    assert lowered.compiler_ir("hlo").as_hlo_text().startswith("HloModule jit_fun")
    assert "HloModule" in lowered.compile().as_text()


def test_costs() -> None:
    lowered = traced().lower()
    found = lowered.cost_analysis()
    assert (found["flops"], found["transcendentals"]) == (7.0, 3.0)
    assert 100 <= found["bytes accessed"] <= 150
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] == 7.0
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (32, 40)


def test_cost_of_what_calls_python() -> None:
    def program(x: Any) -> Any:
        return xlamini.pure_callback(np.asarray, xlamini.ShapeDtypeStruct((3,), "float32"), x) * 2

    assert xlamini.jit(program).lower(jnp.ones(3)).cost_analysis()["bytes accessed"] > 0


def test_another_platform() -> None:
    lowered = traced().lower(lowering_platforms=("tpu",))
    assert "stablehlo.sine" in lowered.as_text()
    with pytest.raises(ValueError, match="was lowered for tpu"):
        lowered.compile()


def test_compiled() -> None:
    compiled = traced().lower().compile()
    found = compiled(*arguments(), k=2.0)
    np.testing.assert_allclose(found["s"], np.full(3, 9.0))
    np.testing.assert_allclose(compiled(np.ones(3), {"w": np.ones((2, 2))}, k=jnp.float32(1))["s"], np.full(3, 5.0))
    device = xlamini.devices()[0]
    (x, y), k = compiled.input_shardings
    assert x.device_set == y["w"].device_set == k["k"].device_set == {device}
    assert compiled.output_shardings["p"].device_set == {device}
    assert compiled.out_info["p"].sharding == compiled.output_shardings["p"]
    assert type(compiled.runtime_executable()).__name__ == "LoadedExecutable"


def test_compiled_once() -> None:
    lowered = traced().lower()
    assert lowered.compile() is lowered.compile()
    assert lowered.compile({"xla_embed_ir_in_executable": True}) is not lowered.compile()


def test_compiler_options() -> None:
    lowered = xlamini.jit(fun, compiler_options={"xla_embed_ir_in_executable": False}).lower(*arguments())
    faster = lowered.compile(compiler_options={"xla_cpu_enable_fast_math": True})
    np.testing.assert_allclose(faster(*arguments())["s"], np.full(3, 5.0))
    with pytest.raises(JaxRuntimeError, match="No such compile option: 'foo'"):
        lowered.compile({"foo": True})


def test_static_arguments_are_compiled_in() -> None:
    jitted = xlamini.jit(lambda x, n: x * n, static_argnums=1)
    compiled = jitted.lower(1.0, 3).compile()
    assert compiled(2.0) == 6.0
    assert str(compiled.in_tree) == "PyTreeDef(((*,), {}))"
    named = xlamini.jit(lambda x, n: x * n, static_argnames="n").lower(1.0, n=3).compile()
    assert named(2.0) == 6.0
    for program, call in ((compiled, lambda: compiled(2.0, 3)), (named, lambda: named(2.0, n=3))):
        with pytest.raises(TypeError, match=r"leave out the static arguments \(n\)"):
            call()
        assert program(1.0) == 3.0


def test_weak_types_come_from_the_signature() -> None:
    double = xlamini.jit(lambda x: x * 2)
    assert double.lower(1.0).compile()(jnp.float32(3)).weak_type
    assert not double.lower(jnp.float32(1)).compile()(3.0).weak_type
    assert double.lower(1.0).out_info.weak_type


def test_types_are_enough() -> None:
    lowered = xlamini.jit(fun).lower(xlamini.ShapeDtypeStruct((3,), "float32"), {"w": np.ones((2, 2), np.float32)})
    np.testing.assert_allclose(lowered.compile()(*arguments())["s"], np.full(3, 5.0))
    compiled = xlamini.jit(lambda x: x + np.arange(3)).lower(xlamini.ShapeDtypeStruct((3,), "int32")).compile()
    assert compiled(np.ones(3, np.int32)).tolist() == [1, 2, 3]


def test_donated_memory_is_gone() -> None:
    compiled = xlamini.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3)).compile()
    x = jnp.ones(3)
    assert compiled(x).tolist() == [2.0] * 3
    with pytest.raises(DeletedArrayError, match="the argument 'x'"):
        compiled(x)


def test_every_wrong_argument_is_named() -> None:
    compiled = traced().lower().compile()
    with pytest.raises(TypeError) as raised:
        compiled(jnp.ones(4), {"w": jnp.ones((2, 2), int)}, k=2)
    assert (
        "x: compiled for f32[3], called with f32[4]; y['w']: compiled for f32[2,2], called with i32[2,2]; "
        "k: compiled for f32[], called with i32[]"
    ) in str(raised.value)


def test_random_keys() -> None:
    key = xlamini.random.key(0)
    compiled = xlamini.jit(xlamini.random.split).lower(key).compile()
    assert compiled(key).dtype == key.dtype
    with pytest.raises(TypeError, match=r"compiled for key<fry>\[\], called with f32\[2\]"):
        compiled(jnp.ones(2))


@pytest.mark.parametrize("transform", [xlamini.jit, xlamini.vmap, xlamini.grad], ids=["jit", "vmap", "grad"])
def test_no_transformation_of_the_compiled(transform: Any) -> None:
    compiled = xlamini.jit(lambda x: (x * x).sum()).lower(jnp.ones(3)).compile()
    with pytest.raises(TypeError, match="a compiled program cannot be transformed"):
        transform(lambda x: compiled(x))(jnp.ones((3, 3)) if transform is xlamini.vmap else jnp.ones(3))


def test_what_is_wrapped() -> None:
    for options in ({}, {"static_argnums": 0}, {"donate_argnums": 0}):
        assert isinstance(xlamini.jit(fun, **options), stages.Wrapped)
    assert not isinstance(fun, stages.Wrapped)


def test_types_of_values() -> None:
    assert [str(xlamini.typeof(x)) for x in (1.0, 1, True, 1j)] == ["~float32[]", "~int32[]", "bool[]", "~complex64[]"]
    assert str(xlamini.typeof(jnp.ones((2, 3)))) == str(xlamini.typeof(np.ones((2, 3)))) == "float32[2,3]"
    assert str(xlamini.typeof(xlamini.ShapeDtypeStruct((2,), "int8"))) == "int8[2]"
    seen: list[Any] = []
    xlamini.vmap(lambda x: seen.append((xlamini.typeof(x), isinstance(x, xlamini.core.Tracer))))(np.ones((3, 2)))
    assert [(str(aval), is_tracer) for aval, is_tracer in seen] == [("float32[2]", True)]
