"""A function as StableHLO with its types and structures: what `export` gives, and what `deserialize` gives again."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlamini.core.api_boundary import edge_methods
from xlamini.core.avals import ShapedArray
from xlamini.core.config import enable_x64
from xlamini.core.dtypes import canonicalize_dtype, float0
from xlamini.core.errors import ShapeError
from xlamini.core.pytree import PyTreeDef, first_difference, flatten_from_user, unflatten
from xlamini.core.tracer import state
from xlamini.interpreters.physical import is_extended, physical_aval
from xlamini.primitives.convert import convert
from xlamini.primitives.random_keys import unwrap_p, wrap_p
from xlamini.staging.aot.mismatch import differences, shown
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.export.call_primitive import ExportedModule, call_exported_p
from xlamini.transforms.export.safety import DisabledSafetyCheck

CALLING_CONVENTION = 10
"""How `main` takes its arguments: by JAX's count, whose convention it is."""


@dataclass(frozen=True)
class Exported:
    """A function as StableHLO for arguments of some types, which later versions of XLA can read.

    `main` of the module takes the arguments with the numbers `module_kept_var_idx`. Where there are several platforms
    (`uses_global_constants`) an int32 comes first: the number of the platform in `platforms`. It gives the results but
    those of dtype float0, which hold nothing. Random keys are the words they are made of.

    Attributes:
      fun_name: the function's name.
      in_tree: the structure of `(args, kwargs)`; static arguments are not in it.
      in_avals: the types of the arguments, flat.
      out_tree: the structure of the result.
      out_avals: the types of the results, flat.
      platforms: where it can be called, such as ("cpu", "cuda").
      mlir_module_serialized: the module as a portable artifact.
      disabled_safety_checks: as `export` was told.
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
        """Whether `main` takes the number of the platform."""
        return len(self.platforms) > 1

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """None for each argument: nothing is said of where they lie."""
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
        """Whether a derivative was exported with it."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported pullback: arguments, then cotangents of all results, to cotangents of all arguments, flat.

        ValueError if none was exported with it.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"{self.fun_name} was serialized without its derivative; give serialize a vjp_order as high as the "
                "number of derivatives that are taken"
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes for `deserialize`; `vjp_order` says how often it can be differentiated then.

        ValueError for containers of a class that is not registered to be written, or where there is no derivative.
        """
        # Imported here: files refer to this class.
        from xlamini.transforms.export.artifact_file import packed

        if not isinstance(vjp_order, int) or vjp_order < 0:
            raise ValueError(f"serialize: vjp_order must be a number such as 0 or 1, got {vjp_order!r}")
        return bytearray(packed(self, vjp_order))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, in a program that is traced too; arguments must have just the types it was exported for.

        It can be differentiated in reverse mode where it has a derivative. It cannot be batched.

        Raises:
          ValueError: another structure, shape or dtype than it was exported for, or another platform.
        """
        leaves, tree = flatten_from_user((args, kwargs))
        _check(self, leaves, tree)
        typed = [_typed(x, aval) for x, aval in zip(leaves, self.in_avals, strict=True)]
        return unflatten(self.out_tree, self._flat(typed))

    def _flat(self, leaves: Sequence[Any]) -> list[Any]:
        """The flat results for flat arguments; those of dtype float0, which hold nothing, stay outside."""
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
        """The same function of flat arguments with the exported pullback as its derivative."""

        def run(*given: Any) -> tuple[Any, ...]:
            return self._run(*given)

        def pullback(given: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
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


def _with_float0(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Values for all the types: those of dtype float0 are missing."""
    given = iter(values)
    return [np.zeros(aval.shape, float0) if aval.dtype == float0 else next(given) for aval in avals]


def _check(exported: Exported, leaves: Sequence[Any], tree: PyTreeDef) -> None:
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


def _remedy(expected: Sequence[ShapedArray]) -> str:
    if any(map(is_extended, expected)):
        return "make such keys with random.key(seed, impl=...)"
    if not enable_x64.value and any(canonicalize_dtype(aval.dtype) != aval.dtype for aval in expected):
        return "it was exported with enable_x64, which is off here; set config.update('jax_enable_x64', True)"
    return "convert them with astype"


def _typed(x: Any, aval: ShapedArray) -> Any:
    return x if aval.dtype == float0 or is_extended(aval) else convert(x, aval.dtype, aval.weak_type)


edge_methods(Exported)
