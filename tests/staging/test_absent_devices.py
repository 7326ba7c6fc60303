"""Programs over an AbstractMesh are lowered for devices that are not here."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xlamini import ShapeDtypeStruct, grad, jit, lax, numpy as jnp, shard_map
from xlamini.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    NamedSharding,
    PartitionSpec as P,
    get_abstract_mesh,
    use_abstract_mesh,
)

EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto
GPU = AbstractDevice("NVIDIA H100", 1, "cuda")


def total(x: Any) -> Any:
    return shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())(x)


def lowered(f: Callable[..., Any], kind: AxisType = EXPLICIT, device: Any = GPU, **how: Any) -> str:
    mesh = AbstractMesh((4,), ("x",), (kind,), abstract_device=device)
    with use_abstract_mesh(mesh):
        x = ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(mesh, P("x")))
        return jit(f).trace(x).lower(**how).as_text()


@pytest.mark.parametrize("kind", [EXPLICIT, AUTO], ids=str)
def test_the_mesh_says_the_platform(kind: AxisType) -> None:
    slope = grad(lambda x: total(x * x).sum())
    for f, operation in ((total, "all_reduce"), (lambda x: jnp.sin(x) * 2, "sine"), (slope, "multiply")):
        text = lowered(f, kind)
        assert operation in text
        assert "mhlo.num_partitions = 4" in text
        assert '{"x"}' in text


def test_the_platform_is_given() -> None:
    assert "all_reduce" in lowered(total, device=None, lowering_platforms=("tpu",))
    chosen = lambda x: lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos)
    assert "cosine" in lowered(chosen)
    assert "sine" in lowered(chosen, lowering_platforms=("tpu",))


def test_the_function_sees_the_devices() -> None:
    def by_platform(x: Any) -> Any:
        return jnp.cos(x) if get_abstract_mesh().abstract_device == GPU else x

    assert "cosine" in lowered(by_platform)


def test_shardings_asked_of_jit() -> None:
    mesh = AbstractMesh((4,), ("x",), (AUTO,))
    f = jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P("x")), out_shardings=NamedSharding(mesh, P()))
    text = f.trace(ShapeDtypeStruct((8,), "float32")).lower(lowering_platforms=("tpu",)).as_text()
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>' in text


def test_it_cannot_be_compiled() -> None:
    mesh = AbstractMesh((4,), ("x",), abstract_device=GPU)
    x = ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="not for a device that is here"):
        jit(jnp.sin).trace(x).lower().compile()
