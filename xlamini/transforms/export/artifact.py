"""An exported function: StableHLO with the types and pytree structures of its arguments and results, and its file.

The file is a header in JSON, the StableHLO, and the file of the derivative if there is one.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlamini.core import (
    Avals,
    LoadError,
    PyTreeDef,
    ShapedArray,
    ShapeError,
    Values,
    api_boundary_methods,
    canonicalize_dtype,
    enable_x64,
    first_difference,
    flatten_from_user,
    float0,
    unflatten,
)
from xlamini.core.api_boundary import api_boundary
from xlamini.core.state import state
from xlamini.core.version import __version__
from xlamini.interpreters.physical import is_extended, physical_aval
from xlamini.primitives import convert, in_space, wrap_p
from xlamini.primitives.random_keys import unwrap_p
from xlamini.runtime.files.file_format import Header, Kind
from xlamini.staging.aot import trees, types
from xlamini.staging.aot.compiled_file import list_of
from xlamini.staging.aot.mismatch import differences, shown
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.export.call_primitive import ExportedModule, call_exported_p
from xlamini.transforms.export.safety import DisabledSafetyCheck, check_kernels

CALLING_CONVENTION = 10
"""The version of the calling convention of `main`, which is JAX's convention."""
LEAST_CONVENTION = 9
"""The oldest calling convention that can be called."""
minimum_supported_calling_convention_version = LEAST_CONVENTION
maximum_supported_calling_convention_version = CALLING_CONVENTION

_FIELDS = {
    **{"name": str, "xlamini": str, "convention": int, "in_tree": object, "out_tree": object},
    **dict.fromkeys("in_avals out_avals names platforms checks kept sizes".split(), list),
}
FILE = Kind("xlamini exported function", 1, _FIELDS, "a file of Exported.serialize()")


@dataclass(frozen=True)
class Exported:
    """A function as portable StableHLO for fixed argument types, which later versions of XLA can read.

    `main` of the module takes the arguments with the indices `module_kept_var_idx`. For several platforms
    (`uses_global_constants`) an int32 comes first: the index of the platform in `platforms`. It returns the results
    except those of dtype float0, which have no data. Random keys are passed as their uint32 words.

    Attributes:
      fun_name: the function's name.
      in_tree: the structure of `(args, kwargs)`; static arguments are not in it.
      in_avals: the types of the arguments, flat.
      out_tree: the structure of the result.
      out_avals: the types of the results, flat.
      platforms: the platforms on which it can be called, such as ("cpu", "cuda").
      mlir_module_serialized: the module as a portable artifact.
      disabled_safety_checks: the `disabled_checks` that were passed to `export`.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes = field(repr=False)
    module_kept_var_idx: tuple[int, ...]
    calling_convention_version: int = CALLING_CONVENTION
    nr_devices: int = 1
    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()
    _names: tuple[str, ...] = field(default=(), repr=False)
    _get_vjp: Callable[[Exported], Exported] | None = field(default=None, repr=False)

    @property
    def uses_global_constants(self) -> bool:
        """Whether `main` takes the platform index."""
        return len(self.platforms) > 1

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """None for each argument: their shardings are unspecified."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """None for each result."""
        return (None,) * len(self.out_avals)

    def mlir_module(self) -> str:
        """The module as text."""
        # Imported here because MLIR's bindings cost 0.1 s.
        from xlamini.lowering.linked_modules import text_of

        return text_of(self.mlir_module_serialized)

    def has_vjp(self) -> bool:
        """Whether its derivative is available."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported pullback: arguments, then cotangents of all results, to cotangents of all arguments, flat.

        ValueError if it is not available.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"{self.fun_name} was serialized without its derivative; give serialize a vjp_order as high as the "
                "number of derivatives that are taken"
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes for `deserialize`, with derivatives up to the order `vjp_order`.

        ValueError for containers of a class that is not registered for serialization, or without a derivative.
        """
        if not isinstance(vjp_order, int) or vjp_order < 0:
            raise ValueError(f"serialize: vjp_order must be a number such as 0 or 1, got {vjp_order!r}")
        return bytearray(_file_of(self, vjp_order))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the exported function, also while tracing; arguments must have exactly the exported types.

        It can be differentiated in reverse mode if its derivative is available. It cannot be batched.

        Raises:
          ValueError: another structure, shape or dtype than it was exported for, or another platform.
        """
        leaves, tree = flatten_from_user((args, kwargs))
        _check(self, leaves, tree)
        typed = [_typed(x, aval) for x, aval in zip(leaves, self.in_avals, strict=True)]
        return unflatten(self.out_tree, self._flat(typed))

    def _flat(self, leaves: Values) -> list[Any]:
        """The flat results for flat arguments; values of dtype float0 are not passed to the module."""
        given = [x for x, aval in zip(leaves, self.in_avals, strict=True) if aval.dtype != float0]
        run = self._run if state.builder is None else self._differentiable
        return _with_float0(run(*given), self.out_avals)

    def _run(self, *given: Any) -> tuple[Any, ...]:
        leaves = _with_float0(given, self.in_avals)
        kept = [(leaves[i], self.in_avals[i]) for i in self.module_kept_var_idx]
        words = [unwrap_p.bind(x) if is_extended(aval) else x for x, aval in kept]
        outs = call_exported_p.bind(*words, module=self._module)
        avals = [a for a in self.out_avals if a.dtype != float0]
        return tuple(
            wrap_p.bind(x, impl=a.dtype.generator) if is_extended(a) else x for x, a in zip(outs, avals, strict=True)
        )

    @functools.cached_property
    def _differentiable(self) -> Any:
        """`_run` as a custom_vjp function, whose derivative is the exported pullback."""

        def run(*given: Any) -> tuple[Any, ...]:
            return self._run(*given)

        def pullback(given: Sequence[Any], cotangents: Values) -> tuple[Any, ...]:
            leaves = [*_with_float0(given, self.in_avals), *_with_float0(cotangents, self.out_avals)]
            pairs = zip(self.vjp()._flat(leaves), self.in_avals, strict=True)
            return tuple(None if ct.dtype == float0 else ct for ct, aval in pairs if aval.dtype != float0)

        run.__name__, pullback.__name__ = self.fun_name, f"{self.fun_name}_vjp"
        made = custom_vjp(run)
        made.defvjp(lambda *given: (made(*given), given), pullback)
        return made

    @functools.cached_property
    def _module(self) -> ExportedModule:
        results = tuple(physical_aval(a) for a in self.out_avals if a.dtype != float0)
        anywhere = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        return ExportedModule(self.fun_name, self.mlir_module_serialized, self.platforms, results, anywhere)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def _with_float0(values: Values, avals: Avals) -> list[Any]:
    """The values with the missing ones, of dtype float0, inserted."""
    given = iter(values)
    return [np.zeros(aval.shape, float0) if aval.dtype == float0 else next(given) for aval in avals]


def _check(exported: Exported, leaves: Values, tree: PyTreeDef) -> None:
    """ShapeError or ValueError for arguments of other types than those it was exported for."""
    name = exported.fun_name
    if tree != exported.in_tree:
        raise ValueError(
            f"exported {name} was called with (args, kwargs) of another structure: "
            f"{first_difference(exported.in_tree, tree, ('exported', 'given'))}"
        )
    wrong = differences(leaves, exported._names, exported.in_avals, name)
    if in_shape := [d for d in wrong if d.in_shape]:
        of = shown(in_shape, "exported")
        raise ShapeError(f"exported {name} was called with other shapes: {of}; export it for these shapes")
    if wrong:
        of = shown(wrong, "exported")
        raise ValueError(f"exported {name} was called with other dtypes: {of}; {_remedy([d.wanted for d in wrong])}")


def _remedy(expected: Avals) -> str:
    if any(map(is_extended, expected)):
        return "make such keys with random.key(seed, impl=...)"
    if not enable_x64.value and any(canonicalize_dtype(aval.dtype) != aval.dtype for aval in expected):
        return "it was exported with enable_x64, which is off here; set config.update('jax_enable_x64', True)"
    return "convert them with astype"


def _typed(x: Any, aval: ShapedArray) -> Any:
    typed = x if aval.dtype == float0 or is_extended(aval) else convert(x, aval.dtype, aval.weak_type)
    return in_space(typed, aval.memory_space)


api_boundary_methods(Exported)


def _file_of(exported: Exported, vjp_order: int) -> bytes:
    """The file of an exported function, with derivatives of it up to this order."""
    what = f"serialize: {exported.fun_name}"
    parts = [exported.mlir_module_serialized]
    _summary(parts[0], trusted=True)  # so that this process may read its own files without a child
    if vjp_order:
        parts.append(_file_of(exported.vjp(), vjp_order - 1))
    header = {
        "name": exported.fun_name,
        "xlamini": __version__,
        "convention": exported.calling_convention_version,
        "in_avals": types.written(exported.in_avals),
        "out_avals": types.written(exported.out_avals),
        "in_tree": trees.written(exported.in_tree, f"{what}: the arguments"),
        "out_tree": trees.written(exported.out_tree, f"{what}: the result"),
        "names": list(exported._names),
        "platforms": list(exported.platforms),
        "checks": [str(check) for check in exported.disabled_safety_checks],
        "kept": list(exported.module_kept_var_idx),
        "sizes": [len(part) for part in parts],
    }
    return FILE.packed(header, b"".join(parts))


@api_boundary
def deserialize(blob: bytes | bytearray, *, trusted: bool = False) -> Exported:
    """The exported function that `Exported.serialize` wrote.

    Nothing of it is run, but MLIR, which reads the StableHLO, can crash on bytes that are made for it. So another
    process reads it first, which takes some 0.5 s for each new content. `trusted=True` says that you know who made it:
    it is read here, and may call the kernels that its maker allowed, not only those that jaxlib keeps stable.

    LoadError for bytes that are damaged, are something else, or come from a version that is too new to be read; for a
    module of other types than its header says; and for containers of a class that is not registered here under the name
    it had.

    >>> blob = xlamini.export.export(xlamini.jit(lambda x: x * 2))(1.0).serialize()
    >>> deserialize(blob).call(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize: bytes of Exported.serialize() are needed, got a {type(blob).__name__}")
    build = functools.partial(_exported, trusted=trusted)
    found = FILE.read(bytes(blob), build, "serialize it again", "deserialize: ")
    try:
        _check_module(found, trusted)
    except LoadError as error:
        raise LoadError(f"deserialize: {found.fun_name}: {error}") from None
    return found


def _summary(artifact: bytes, trusted: bool) -> Any:
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.module_check import summary

    return summary(artifact, trusted)


def _check_module(exported: Exported, trusted: bool) -> None:
    """LoadError unless the module takes and returns what the header says, and calls only kernels that may be called."""
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.module_check import type_text

    found = _summary(exported.mlir_module_serialized, trusted)
    index = ["tensor<i32>"] if exported.uses_global_constants else []
    arguments = [type_text(physical_aval(exported.in_avals[i])) for i in exported.module_kept_var_idx]
    results = [type_text(physical_aval(a)) for a in exported.out_avals if a.dtype != float0]
    if found.arguments != index + arguments or found.results != results:
        raise LoadError("the StableHLO has other argument or result types than the header says; serialize it again")
    try:
        check_kernels(exported.fun_name, found.kernels, exported.disabled_safety_checks if trusted else ())
    except ValueError:
        raise LoadError(
            f"it calls kernels without a stable interface, {', '.join(found.kernels)}; if you know who made the file, "
            "pass trusted=True"
        ) from None


def _exported(header: Header, parts: Sequence[bytes], trusted: bool) -> Exported:
    convention = header["convention"]
    if not LEAST_CONVENTION <= convention <= CALLING_CONVENTION:
        raise LoadError(
            f"deserialize: {header['name']} has calling convention {convention}, but here are {LEAST_CONVENTION} to "
            f"{CALLING_CONVENTION}; it was written by xlamini {header['xlamini']}"
        )
    read = Exported(
        fun_name=header["name"],
        in_tree=trees.read(header["in_tree"]),
        in_avals=tuple(types.read(header["in_avals"])),
        out_tree=trees.read(header["out_tree"]),
        out_avals=tuple(types.read(header["out_avals"])),
        platforms=tuple(list_of(str, header["platforms"])),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, list_of(str, header["checks"]))),
        mlir_module_serialized=parts[0],
        module_kept_var_idx=tuple(list_of(int, header["kept"])),
        calling_convention_version=convention,
        _names=tuple(list_of(str, header["names"])),
        _get_vjp=_reader(parts[1], trusted) if len(parts) > 1 else None,
    )
    _check_header(read)
    return read


def _check_header(read: Exported) -> None:
    """LoadError unless the header's structures, names and indices fit its types."""
    for tree, avals in ((read.in_tree, read.in_avals), (read.out_tree, read.out_avals)):
        if tree.num_leaves != len(avals):
            raise LoadError(f"deserialize: {tree} is not the structure of the {len(avals)} arrays of {read.fun_name}")
    kept, count = read.module_kept_var_idx, len(read.in_avals)
    if not read.platforms or len(read._names) != count or any(not 0 <= i < count for i in kept):
        raise LoadError(f"deserialize: the header of {read.fun_name} does not fit its {count} arguments")


def _reader(blob: bytes, trusted: bool) -> Any:
    return lambda _: deserialize(blob, trusted=trusted)
