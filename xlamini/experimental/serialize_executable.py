"""Compiled functions as bytes, with their structures apart; `Compiled.serialize` and `xlamini.load` keep all in one."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import PyTreeDef
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime import Device
from xlamini.staging.aot.load import load_apart as _load_apart
from xlamini.staging.aot.stages import Compiled

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """The compiled function as bytes, and the structures of its arguments and of its result.

    The structures are left to the caller to keep, so that containers of any class may be in them. TypeError for what
    `compile()` did not make; ValueError for a program that calls Python functions.

    >>> blob, in_tree, out_tree = serialize(xlamini.jit(lambda x: x * 2).lower(1.0).compile())
    >>> deserialize_and_load(blob, in_tree, out_tree)(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize: jit(f).lower(...).compile() is needed, got a {type(compiled).__name__}")
    return compiled._serialized(with_trees=False), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """The compiled function that `serialize` took apart, on the first device of `execution_devices` or `backend`.

    LoadError where the bytes are damaged, or were made for another jaxlib, device or processor.

    >>> compiled = xlamini.jit(lambda x: {"half": x / 2}).lower(1.0).compile()
    >>> loaded = deserialize_and_load(*serialize(compiled))
    >>> loaded(3.0)
    {'half': Array(1.5, dtype=float32, weak_type=True)}
    """
    return _load_apart(serialized, in_tree, out_tree, backend, execution_devices)


_edge_of_face(globals())
