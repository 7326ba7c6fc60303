"""The names that objects say of themselves: where xlamini answers for JAX, they are JAX's.

Libraries choose their code for arrays by `type(x).__module__.split(".")[0]`, and tables of functions by `__module__`.
A name that leads somewhere in JAX leads to the same object here, as pickles need it.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from xlamini.core.errors.frames import own_packages

CLASSES: dict[str, tuple[str, ...]] = {
    "jax": ("runtime.arrays.array.Array", "staging.trace.shape_struct.ShapeDtypeStruct"),
    "jax._src.core": (
        "core.tracing.tracer.Tracer", "core.program.avals.ShapedArray", "core.program.primitive.Primitive",
        "core.program.jaxpr.ClosedJaxpr",
        "as_jax.jaxprs.forms.Jaxpr", "core.program.jaxpr.Jaxpr", "core.program.jaxpr.Equation",
        "core.program.jaxpr.Var", "core.program.jaxpr.Literal",
    ),
    "jax._src.literals": tuple(
        f"as_jax.jaxprs.literals.{name}" for name in ("TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray")
    ),
    "jax._src.random.prng": ("runtime.arrays.keys.PRNGKeyArray", "runtime.arrays.keys.KeyType"),
    "jax.dtypes": ("core.dtypes.table.prng_key",),
    "jax.experimental.layout": ("runtime.arrays.layout.Format", "runtime.arrays.layout.Layout"),
    "jax.lax": (
        "primitives.base.precision.Precision", "primitives.indexing.gather_numbers.GatherDimensionNumbers",
        "primitives.indexing.gather_numbers.ScatterDimensionNumbers",
        "primitives.indexing.gather_numbers.GatherScatterMode",
        "primitives.windows.conv_numbers.ConvDimensionNumbers",
    ),
    "jax.sharding": (
        "core.sharding.partition_spec.PartitionSpec", "core.sharding.abstract_mesh.AbstractMesh",
        "core.sharding.abstract_mesh.AxisType", "runtime.meshes.mesh.Mesh",
        "runtime.meshes.named_sharding.NamedSharding", "runtime.sharding.SingleDeviceSharding",
    ),
    "jax.tree_util": ("core.pytree.nodes.Partial",),
}
"""The module, by JAX's name, of each class that values and programs have."""


def use_jax_names() -> None:
    """Give the classes of values, and the errors, the names of JAX's modules."""
    own_packages.add("jax")
    errors = [e for e in vars(sys.modules["xlamini.core.errors"]).values() if isinstance(e, type)]
    for module, cls in [*_classes(), *(("jax.errors", e) for e in errors)]:
        cls.__module__ = module


def _classes() -> Iterator[tuple[str, Any]]:
    for module, paths in CLASSES.items():
        for path in paths:
            home, _, name = path.rpartition(".")
            yield module, getattr(sys.modules[f"xlamini.{home}"], name)


def rename(module: ModuleType, name: str) -> None:
    """Give a module JAX's name for it, and its functions and classes with it.

    A face loads names when they are first used; a module of the overlay names them then by itself.
    """
    before, module.__name__ = module.__name__, name
    for member in list(vars(module).values()):
        name_member(member, name)
    load = vars(module).get("__getattr__")
    if load is not None and not before.startswith(__package__ or ""):
        module.__getattr__ = lambda attribute: name_member(load(attribute), name)  # type: ignore[method-assign]


def name_member(member: Any, module: str) -> Any:
    """The member of a module, of which it says that it is, if it is a function or class without a name of JAX's."""
    if callable(member) and str(getattr(member, "__module__", "")).startswith("xlamini"):
        with suppress(AttributeError, TypeError):  # of an object that does not say it of itself
            member.__module__ = module
    return member
