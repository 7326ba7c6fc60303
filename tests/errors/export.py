"""Functions that are exported, saved and loaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.support.error_rows import ones, power_of, row, square
from xlamini import debug, dlpack, enable_x64, export, jit, load, random
from xlamini.errors import LoadError, ShapeError
from xlamini.experimental import serialize_executable


class Unregistered(NamedTuple):
    """A container that no file may hold."""

    x: Any


def exported(*args: Any, **options: Any) -> Any:
    return export.export(jit(power_of), **options)(*(args or (ones(3), 2.0)))


def exported_wide() -> Any:
    with enable_x64(True):
        return exported(np.ones(3), np.float64(2))


def compiled(fun: Any, *args: Any) -> Any:
    return jit(fun).lower(*args).compile()


def printing(x: Any) -> Any:
    debug.print("{}", x)
    return x


def of_container(p: Any) -> Any:
    return p.x


ROWS = [
    row("not jitted", lambda: export.export(square), ValueError, "the function must be jitted", "export(jit(f))(...)"),  # type: ignore[arg-type]
    row("platform", lambda: exported(platforms=("abacus",)), ValueError, "there is no platform 'abacus'", "cpu, cuda"),
    row("gpu", lambda: exported(platforms=("gpu",)), ValueError, "could be two platforms; name 'cuda' or 'rocm'"),
    row("text", lambda: exported(platforms="cpu"), ValueError, "must be a tuple, got 'cpu'", "platforms=('cpu',)"),
    row(
        "callback", lambda: export.export(jit(printing))(1.0), NotImplementedError,
        "export: printing calls Python functions", "take them out",
    ),
    row(
        "traced", lambda: jit(lambda y: export.export(jit(lambda x: x + y))(1.0))(1.0), TypeError,
        "uses a traced value of the function around it", "export outside",
    ),
    row(
        "shape", lambda: exported().call(ones(4), 2.0), ShapeError, "exported power_of was called with other shapes",
        "x: exported for f32[3], called with f32[4]",
    ),
    row(
        "dtype", lambda: exported().call(ones(3), 2), ValueError, "n: exported for f32[], called with i32[]", "astype",
    ),
    row(
        "wide", lambda: exported_wide().call(ones(3), 2.0), ValueError, "x: exported for f64[3], called with f32[3]",
        "it was exported with enable_x64, which is off here",
    ),
    row(
        "kind of keys", lambda: export.export(jit(random.split))(random.key(0)).call(random.key(0, impl="rbg")),
        ValueError, "exported for key<fry>[], called with key<rbg>[]", "random.key(seed, impl=...)",
    ),
    row("structure", lambda: exported().call(ones(3)), ValueError, "of another structure", "a tuple of length 1"),
    row(
        "for JAX", lambda: export.serialize_for_jax(exported().serialize()), TypeError,  # type: ignore[arg-type]
        "serialize_for_jax: an Exported is needed, got a bytearray",
    ),
    row(
        "order for JAX", lambda: export.serialize_for_jax(exported(), -1), ValueError,
        "vjp_order must be a number such as 0 or 1, got -1",
    ),
    row(
        "whole numbers for JAX", lambda: export.serialize_for_jax(exported(ones(3), 2), 1), ValueError,
        "power_of_vjp has results of dtype float0, which its module leaves out", "or vjp_order=0",
    ),
    row(
        "keys for JAX", lambda: export.serialize_for_jax(export.export(jit(dict))({1: 1.0})), ValueError,
        "JAX writes dicts with strings as keys, not [1]", "make the keys strings",
    ),
    row("type", lambda: exported().call(ones(3), "two"), TypeError, "argument 'n' of power_of is 'two' of type str"),
    row(
        "elsewhere", lambda: exported(platforms=("tpu",)).call(ones(3), 2.0), ValueError,
        "power_of was exported for tpu, but is called on cpu", "platforms=('tpu', 'cpu')",
    ),
    row(
        "no derivative", lambda: export.deserialize(exported().serialize()).vjp(), ValueError,
        "power_of was serialized without its derivative", "vjp_order",
    ),
    row("order", lambda: exported().serialize(vjp_order=-1), ValueError, "vjp_order must be a number", "got -1"),
    row(
        "container", lambda: export.export(jit(of_container))(Unregistered(1.0)).serialize(), ValueError,
        "serialize: of_container: the arguments", "register_namedtuple_serialization(Unregistered, serialized_name=",
    ),
    row(
        "key", lambda: export.export(jit(lambda d: d[(0, 1)]))({(0, 1): 1.0}).serialize(), ValueError,
        "a dict with the key (0, 1)", "make the key a str",
    ),
    row("no bytes", lambda: export.deserialize("step.bin"), TypeError, "deserialize: bytes of", "got a str"),  # type: ignore[arg-type]
    row("other bytes", lambda: export.deserialize(b"\x80\x04."), LoadError, "deserialize: it does not begin as"),
    row("symbolic", lambda: export.symbolic_shape("b, &"), ValueError, "symbolic shape 'b, &': it is no list of sizes"),
    row(
        "save", lambda: compiled(printing, 1.0).serialize(), ValueError, "serialize: printing calls Python functions",
        "take them out",
    ),
    row(
        "save container", lambda: compiled(of_container, Unregistered(1.0)).serialize(), ValueError,
        "serialize: of_container: the arguments", "register_namedtuple_serialization",
    ),
    row("load other bytes", lambda: load(b"\x80\x04."), LoadError, "load: 3 bytes: it does not begin as"),
    row("load a function", lambda: load(square), TypeError, "load: the path of a file", "got a function"),  # type: ignore[arg-type]
    row("load nothing", lambda: load("no such file"), FileNotFoundError, "no such file"),
    row(
        "load exported", lambda: load(bytes(exported().serialize())), LoadError,
        "does not begin as a file of Compiled.serialize() does",
    ),
    row(
        "apart", lambda: load(serialize_executable.serialize(compiled(square, 1.0))[0]), LoadError,
        "the structures of its arguments are kept elsewhere", "deserialize_and_load",
    ),
    row("save nowhere", lambda: compiled(square, 1.0).save("no such folder/step"), FileNotFoundError, "no such folder"),
    row("no executable", lambda: serialize_executable.serialize(square), TypeError, "is needed, got a function"),  # type: ignore[arg-type]
    row(
        "loaded", lambda: load(compiled(power_of, ones(3), 2.0).serialize())(ones(4), 2.0), TypeError,
        "x: compiled for f32[3], called with f32[4]",
    ),
    row(
        "registered twice",
        lambda: [export.register_namedtuple_serialization(Unregistered2, serialized_name="u2") for _ in range(2)],
        ValueError, "Unregistered2 is registered already, as 'u2'",
    ),
    row(
        "no node",
        lambda: export.register_pytree_node_serialization(
            object, serialized_name="o", serialize_auxdata=repr, deserialize_auxdata=repr  # type: ignore[arg-type]
        ),
        ValueError, "builtins.object is no pytree node", "register_pytree_node first",
    ),
    row("no platform", lambda: exported(platforms=[]), ValueError, "export: platforms is empty", "at least one"),
    row(
        "no copy", lambda: dlpack.from_dlpack(np.ones(9, np.float32)[::2], copy=False), ValueError,
        "from_dlpack: this array must be copied, but copy=False",
    ),
    row(
        "wide", lambda: dlpack.from_dlpack(np.arange(3), copy=False), ValueError,
        "from_dlpack: ", "copy=False",
    ),
]  # fmt: skip


class Unregistered2(NamedTuple):
    """A container that is registered by a test."""

    x: Any
