"""An exported function: StableHLO with the types, shardings and pytree structures of its arguments and results."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xlamini.core import (
    AbstractMesh,
    Avals,
    LoadError,
    PyTreeDef,
    ShapedArray,
    Values,
    api_boundary_methods,
    aval_of,
    flatten_from_user,
    float0,
    tangent_aval,
    unflatten,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.sizes.solving import ArgumentSizes
from xlamini.core.tracing.state import state
from xlamini.interpreters.physical import is_extended
from xlamini.primitives import reshard_as, wrap_p, zeros
from xlamini.primitives.random.random_keys import unwrap_p
from xlamini.runtime import Mesh
from xlamini.runtime.files.file_format import Header
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.trace.static_args import Selected
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.export.arguments import check_arguments, typed_as, where_data, with_float0
from xlamini.transforms.export.call_primitive import (
    ExportedModule,
    Sizes,
    call_exported_p,
    explicit_mesh,
    sized,
    split_over,
)
from xlamini.transforms.export.exported_file import (
    CALLING_CONVENTION,
    LEAST_CONVENTION,
    check_header,
    check_module,
    fields_of,
    kind_of,
    packed,
    passed_aval,
)
from xlamini.transforms.export.safety import DisabledSafetyCheck
from xlamini.transforms.export.shardings import Shardings, check_splits, over

minimum_supported_calling_convention_version = LEAST_CONVENTION
"""The oldest version of the format of exported functions that `deserialize` reads.

>>> exported = xlamini.export.export(xlamini.jit(jnp.sin))(1.0)
>>> exported.calling_convention_version >= minimum_supported_calling_convention_version
True
"""
maximum_supported_calling_convention_version = CALLING_CONVENTION
"""The newest version of the format of exported functions: the one that `export` writes.

>>> exported = xlamini.export.export(xlamini.jit(jnp.sin))(1.0)
>>> exported.calling_convention_version == maximum_supported_calling_convention_version
True
"""


@dataclass(frozen=True)
class Exported:
    """A function as portable StableHLO for fixed argument types, which later versions of XLA can read.

    `main` of the module takes the arguments with the indices `module_kept_var_idx`. For several platforms
    (`uses_global_constants`) an int32 comes first: the index of the platform in `platforms`. It returns the results
    except those of dtype float0, which have no data; JAX's modules have truth values for these. Random keys are passed
    as their uint32 words.

    Attributes:
      fun_name: the function's name.
      in_tree: the structure of `(args, kwargs)`; static arguments are not in it.
      in_avals: the types of the arguments, flat.
      out_tree: the structure of the result.
      out_avals: the types of the results, flat.
      platforms: the platforms on which it can be called, such as ("cpu", "cuda").
      mlir_module_serialized: the module as a portable artifact.
      disabled_safety_checks: the `disabled_checks` that were passed to `export`.
      nr_devices: the number of devices that it runs on. One exported for one device may be called on several.

    >>> exported = xlamini.export.export(xlamini.jit(lambda x: 2 * x))(jnp.ones(3))
    >>> exported.in_avals, exported.out_avals, exported.platforms
    ((ShapedArray(float32[3]),), (ShapedArray(float32[3]),), ('cpu',))
    >>> exported.call(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    >>> exported.call(jnp.arange(4.0))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ShapeError: exported <lambda> was called with other shapes: ...
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
    _in_named_shardings: Shardings = field(default=(), repr=False)
    _out_named_shardings: Shardings = field(default=(), repr=False)
    _names: tuple[str, ...] = field(default=(), repr=False)
    _passes_float0: bool = field(default=False, repr=False)
    _vouched: bool = field(default=True, repr=False)
    _get_vjp: Callable[[Exported], Exported] | None = field(default=None, repr=False)

    @property
    def uses_global_constants(self) -> bool:
        """Whether `main` takes the platform index."""
        return len(self.platforms) > 1

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """The sharding of each argument as XLA's HloSharding; None where the caller chooses."""
        return _of_hlo(self._in_named_shardings, self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """The sharding of each result; None where the compiler chooses."""
        return _of_hlo(self._out_named_shardings, self.out_avals)

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Shardings:
        """The shardings of the arguments over another mesh of `nr_devices` devices; None where the caller chooses.

        ValueError for a mesh of another size, ShardingError for a sharding that no PartitionSpec of the mesh says.

        >>> mesh = xlamini.make_mesh((1,), ("x",))
        >>> double = xlamini.jit(lambda x: x * 2, in_shardings=xlamini.NamedSharding(mesh, xlamini.P("x")))
        >>> xlamini.export.export(double)(xlamini.numpy.ones(3)).in_shardings_jax(mesh)[0].spec
        P('x',)
        """
        return self._over(mesh, self._in_named_shardings, self.in_avals)

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Shardings:
        """The shardings of the results over another mesh, as `in_shardings_jax`."""
        return self._over(mesh, self._out_named_shardings, self.out_avals)

    def _over(self, mesh: Mesh | AbstractMesh, shardings: Shardings, avals: Avals) -> Shardings:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(f"{self.fun_name}: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
        if mesh.size != self.nr_devices and any(shardings):
            raise ValueError(
                f"{self.fun_name} was exported for {self.nr_devices} devices, but {mesh} has {mesh.size}; make a mesh "
                f"of {self.nr_devices}"
            )
        return tuple(over(self.fun_name, s, mesh, a.ndim) for s, a in zip(shardings, avals, strict=True))

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
        return bytearray(packed(self, vjp_order))

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the exported function, also while tracing; arguments must have exactly the exported types.

        It can be differentiated in reverse mode if its derivative is available. With `vmap` it is a loop over the
        examples, because a module is for arrays of the exported shapes.

        Raises:
          ValueError: another structure, shape or dtype than it was exported for, or another platform.
        """
        # Where nothing is traced, a call is one of a jitted function, and costs as little.
        return self._program(*args, **kwargs) if state.builder is None else self._checked(args, kwargs)

    @functools.cached_property
    def _program(self) -> Any:
        """The call as a program of its own, compiled once for all equal modules."""

        def run(*args: Any, **kwargs: Any) -> Any:
            return self._called(flatten_from_user((args, kwargs))[0])

        run.__name__ = self.fun_name
        jitted = Jitted(run, Options(Selected("static", run, None, None), Selected("donate", run, None, None)))
        jitted.shares_programs, jitted.instead = True, self._check
        return wrapped(jitted)

    def _checked(self, args: Values, kwargs: dict[str, Any]) -> Any:
        self._check(args, kwargs)
        return self._called(flatten_from_user((args, kwargs))[0])

    def _check(self, args: Values, kwargs: dict[str, Any]) -> None:
        check_arguments(self, *flatten_from_user((args, kwargs)))

    def _called(self, leaves: Values) -> Any:
        """The results as part of the program being traced, for arguments that have the exported types."""
        typed = [typed_as(x, aval) for x, aval in zip(leaves, self.in_avals, strict=True)]
        given = where_data(typed, self.in_avals)
        sizes = self._sizes(given)
        if sizes:
            outs = [f"output {i} of {self.fun_name}" for i in range(len(self.out_avals))]
            check_splits(self._names, self._in_named_shardings, self.in_avals, sizes)
            check_splits(outs, self._out_named_shardings, self.out_avals, sizes)
        return unflatten(self.out_tree, with_float0(self._traced(*given), [sized(a, sizes) for a in self.out_avals]))

    def _traced(self, *given: Any) -> tuple[Any, ...]:
        """The results as part of the program being traced; along explicit axes operands first get the exported types.
        """
        mesh = explicit_mesh(given)
        shardings = where_data(self._in_named_shardings, self.in_avals)
        splits = [split_over(self._module, s, mesh, aval_of(x).ndim) for s, x in zip(shardings, given, strict=True)]
        return self._differentiable(*map(reshard_as, given, splits))

    def _run(self, *given: Any) -> tuple[Any, ...]:
        sizes, leaves = self._sizes(given), iter(given)
        words = [None if a.dtype == float0 else _words(next(leaves), a) for a in self.in_avals]
        kept = [(words[i], self.in_avals[i]) for i in self.module_kept_var_idx]
        operands = [zeros(passed_aval(sized(a, sizes))) if a.dtype == float0 else x for x, a in kept]
        outs = call_exported_p.bind(*operands, module=self._module.sized(sizes), mesh=explicit_mesh(given))
        results, avals = where_data(outs, self._returned(self.out_avals)), where_data(self.out_avals, self.out_avals)
        pairs = zip(results, avals, strict=True)
        return tuple(wrap_p.bind(x, impl=a.dtype.generator) if is_extended(a) else x for x, a in pairs)

    def _returned(self, each: Sequence[Any]) -> tuple[Any, ...]:
        """What is for the results that `main` returns."""
        return tuple(each) if self._passes_float0 else where_data(each, self.out_avals)

    def _sizes(self, given: Values) -> Sizes:
        """The values of the symbolic sizes for the arguments with data; ShapeError for sizes that do not fit."""
        if not self._symbolic:
            return {}
        return self._argument_sizes.values([aval_of(x).shape for x in given])

    @functools.cached_property
    def _argument_sizes(self) -> ArgumentSizes:
        names, wanted = where_data(self._names, self.in_avals), where_data(self.in_avals, self.in_avals)
        return ArgumentSizes(names, [a.shape for a in wanted])

    @functools.cached_property
    def _symbolic(self) -> bool:
        return any(is_symbolic_shape(a.shape) for a in self.in_avals)

    @functools.cached_property
    def _differentiable(self) -> Any:
        """`_run` as a custom_vjp function, whose derivative is the exported pullback."""

        def run(*given: Any) -> tuple[Any, ...]:
            return self._run(*given)

        def pullback(given: Sequence[Any], cotangents: Values) -> tuple[Any, ...]:
            of_data = where_data(self.out_avals, self.out_avals)
            cts = [ct for ct, a in zip(cotangents, of_data, strict=True) if tangent_aval(a).dtype != float0]
            pullback = self.vjp()
            found = iter(pullback._traced(*given, *cts))
            outs = [None if a.dtype == float0 else next(found) for a in pullback.out_avals]
            return where_data(outs, self.in_avals)

        run.__name__, pullback.__name__ = self.fun_name, f"{self.fun_name}_vjp"
        made = custom_vjp(run)
        made.defvjp(lambda *given: (made(*given), given), pullback)
        return made

    @functools.cached_property
    def _module(self) -> ExportedModule:
        results = tuple(passed_aval(a.with_sharding(None)) for a in self._returned(self.out_avals))
        anywhere = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        ins = tuple(self._in_named_shardings[i] for i in self.module_kept_var_idx)
        outs = self._returned(self._out_named_shardings)
        code = self.mlir_module_serialized
        return ExportedModule(
            self.fun_name, code, self.platforms, results, anywhere, self.nr_devices, ins, outs, self._vouched
        )

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def _words(x: Any, aval: ShapedArray) -> Any:
    """The array of numbers that a module takes for a value."""
    return unwrap_p.bind(x) if is_extended(aval) else x


def _of_hlo(shardings: Shardings, avals: Avals) -> tuple[Any, ...]:
    return tuple(s and s._to_xla_hlo_sharding(a.ndim) for s, a in zip(shardings, avals, strict=True))


api_boundary_methods(Exported)


@api_boundary
def deserialize(blob: bytes | bytearray, *, trusted: bool = False) -> Exported:
    """The exported function that `Exported.serialize` wrote, here or in JAX.

    Nothing of it is run, but MLIR, which reads the StableHLO, can crash on bytes that are made for it. So a child
    process reads it first; its start takes some 0.3 s, and each file milliseconds. `trusted=True` says that you know
    who made it: it is read here, and may call the kernels that its maker allowed, not only those that jaxlib keeps
    stable.

    LoadError for bytes that are damaged, are something else, or come from a version that is too new to be read; for a
    module of other types than its header says; and for containers of a class that is not registered here under the name
    it had.

    >>> blob = xlamini.export.export(xlamini.jit(lambda x: x * 2))(1.0).serialize()
    >>> deserialize(blob).call(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize: bytes of Exported.serialize() are needed, got a {type(blob).__name__}")
    build, data = functools.partial(_restored, trusted=trusted), bytes(blob)
    found = kind_of(data).read(data, build, "serialize it again", "deserialize: ")
    try:
        vouched = check_module(found, trusted)
    except LoadError as error:
        raise LoadError(f"deserialize: {found.fun_name}: {error}") from None
    return dataclasses.replace(found, _vouched=vouched)


def _restored(header: Header, parts: Sequence[bytes], trusted: bool) -> Exported:
    derivative = _reader(parts[1], trusted) if len(parts) > 1 else None
    found = Exported(**fields_of(header, parts), _get_vjp=derivative)
    check_header(found)
    return found


def _reader(blob: bytes, trusted: bool) -> Any:
    return lambda _: deserialize(blob, trusted=trusted)
