"""What a per-device function prints outside of jit: texts as JAX 0.10.2 prints them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, debug, jit, lax, numpy as jnp, random, shard_map


@pytest.fixture
def mesh() -> Any:
    return xlamini.make_mesh((2, 2), ("i", "j"))


def texts(f: Any, mesh: Any, *args: Any, **specs: Any) -> list[str]:
    """What f(x) returns as texts, for each call of f."""
    found: list[str] = []

    def showing(*xs: Any) -> Any:
        found.extend(map(str, f(*xs)))
        return xs[0]

    result = shard_map(showing, mesh=mesh, out_specs=specs["in_specs"], **specs)(*args)
    assert result.tolist() == jnp.asarray(args[0]).tolist()
    return found


def test_each_device_has_its_part(mesh: Any) -> None:
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    part, total, same = texts(
        lambda x: (x, lax.psum(x.sum(), ("i", "j")), lax.axis_index("i")), mesh, x, in_specs=P("i", "j")
    )
    heads = [f"On cpu:{2 * i + j} at mesh coordinates (i, j,) = ({i}, {j}):\n" for i in (0, 1) for j in (0, 1)]
    blocks = ["[[0.]\n [2.]]\n", "[[1.]\n [3.]]\n", "[[4.]\n [6.]]\n", "[[5.]\n [7.]]\n"]
    assert part == "\n".join(h + b for h, b in zip(heads, blocks, strict=True))
    assert total == "\n".join(h + "28.0\n" for h in heads)
    assert same == "\n".join(h + b for h, b in zip(heads, ["0\n", "0\n", "1\n", "1\n"], strict=True))


def test_one_axis_and_formats() -> None:
    mesh = xlamini.make_mesh((2,), ("i",))
    factor = jnp.float32(3)
    product, formatted = texts(lambda x: (x * factor, f"{x + 1}|"), mesh, np.arange(4, dtype=np.int32), in_specs=P("i"))
    on = "On cpu:0 at mesh coordinates (i,) = (0,):\n{}\n\nOn cpu:1 at mesh coordinates (i,) = (1,):\n{}\n"
    assert product == on.format("[0. 3.]", "[6. 9.]") and formatted == on.format("[1 2]", "[3 4]") + "|"


def test_some_axes_are_manual(mesh: Any) -> None:
    mesh = mesh.update(axis_types=xlamini.sharding.AxisType.Auto)
    (text,) = texts(lambda x: (x,), mesh, np.arange(4, dtype=np.float32), in_specs=P("i"), axis_names={"i"})
    assert text == (
        "On cpu:0 at mesh coordinates (i,) = (0,):\n[0. 1.]\n\nOn cpu:2 at mesh coordinates (i,) = (1,):\n[2. 3.]\n"
    )


def test_the_current_mesh_and_checks_stay_as_they_are(mesh: Any) -> None:
    def f(x: Any) -> Any:
        return x, lax.psum(x, "j"), lax.psum(x, "i")

    with xlamini.set_mesh(mesh):
        found = texts(f, mesh, np.ones(4, np.float32), in_specs=P("i"), check_vma=False)
        assert xlamini.sharding.get_mesh() == mesh
    assert [text.count("[2. 2.]") for text in found] == [0, 4, 4]


def test_types_are_shown_where_there_are_no_values(mesh: Any) -> None:
    shown: list[str] = []

    def f(x: Any) -> Any:
        shown.append(str(x))
        return x

    mapped = shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    x = np.arange(4.0, dtype=np.float32)
    jit(mapped)(x)
    xlamini.grad(lambda x: mapped(x).sum())(x)
    jit(lambda k: shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(k))(random.split(random.key(0), 4))
    assert all(text.startswith("JitTracer(") for text in shown) and len(shown) == 3
    kept: list[Any] = []
    shard_map(lambda x: kept.append(x) or x, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x)
    assert str(kept[0]) == repr(kept[0]) == "JitTracer(float32[2]{V:i})"


def test_effects_happen_once(mesh: Any, capsys: Any) -> None:
    def f(x: Any) -> Any:
        debug.print("here {}", x[0])
        return (x + 1,)

    texts(f, mesh, np.arange(2.0, dtype=np.float32), in_specs=P("i"))
    xlamini.effects_barrier()
    assert capsys.readouterr().out.count("here") == 4
