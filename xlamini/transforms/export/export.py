"""The public function `export`: a jitted function as portable StableHLO, also for platforms that are not attached."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from xlamini.core import (
    Jaxpr,
    Tracer,
    example_of,
    float0,
    is_differentiable,
    keystr,
    subjaxprs,
    tangent_aval,
    tree_flatten_with_path,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import is_own
from xlamini.core.program.effects import debug_effect, ffi_effect, io_effect, ordered_debug_effect, ordered_io_effect
from xlamini.core.program.form import PLATFORMS, Platform
from xlamini.core.pytree import structure
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.interpreters.evaluate import evaluate
from xlamini.runtime.devices.platforms import default_backend
from xlamini.staging import Trace, chosen, inverse, jit, merged
from xlamini.staging.aot.captured_arrays import ndarrays
from xlamini.staging.aot.jit_type import Wrapped
from xlamini.staging.aot.stages import Traced
from xlamini.staging.compile import pipeline
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.derivatives.vjp import vjp
from xlamini.transforms.export.artifact import Exported
from xlamini.transforms.export.call_primitive import call_exported_p
from xlamini.transforms.export.safety import DisabledSafetyCheck, check_kernels
from xlamini.transforms.export.shardings import (
    ExportPlacement,
    mesh_of,
    of_cotangents,
    placement_of,
    typed,
    without_devices,
)
from xlamini.transforms.export.size_texts import check_determined

_OF_PYTHON = {io_effect, ordered_io_effect, debug_effect, ordered_debug_effect}


def default_export_platform() -> str:
    """The platform that `export` uses by default: the default backend.

    >>> default_export_platform()
    'cpu'
    """
    found = default_backend()
    return {"gpu": "cuda"}.get(found, found)


def export(
    fun_jit: Wrapped[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """An exporter of a jitted function: called with arguments or their types, it returns an `Exported`.

    Shardings over a mesh become part of it: those of arguments and types, of `jit` (`in_shardings`, `out_shardings`),
    and in the program. The mesh may be an AbstractMesh, as its devices are not recorded.

    Args:
      fun_jit: what `jit` returned, or a function of the library such as `jnp.cos`. Arrays that it captures are
        written into the module.
      platforms: the target platforms, of cpu, cuda, rocm and tpu; by default the default backend. If platforms need
        different operations, the module contains all of them, and the compiler selects.
      disabled_checks: checks to skip; see `DisabledSafetyCheck`.

    Raises:
      ValueError: the function is not jitted, no platform is named or one is unknown, or it calls kernels without a
        stable interface; or shardings are over different numbers of devices.
      NotImplementedError: it calls Python functions, which do not exist in another process.

    >>> exported = export(xlamini.jit(lambda x: x * 2), platforms=("cpu", "tpu"))(1.0)
    >>> exported.out_avals
    (ShapedArray(float32[], weak_type=True),)
    >>> exported.call(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    if not isinstance(fun_jit, Wrapped) and is_own(fun_jit):
        fun_jit = jit(fun_jit)  # in JAX the functions of jax.numpy are jitted
    if not isinstance(fun_jit, Wrapped):
        raise ValueError(f"export: the function must be jitted, got {fun_jit!r}; write export(jit(f))(...)")
    names, checks = _platforms(platforms), tuple(disabled_checks)

    @api_boundary
    def exporting(*args: Any, **kwargs: Any) -> Exported:
        traced: Any = fun_jit.trace(*args, **kwargs)
        return _exported(traced, names, checks, mesh_of(traced._call, traced._ahead.asked()))

    return exporting


def _platforms(asked: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(asked, str):
        raise ValueError(f"export: platforms must be a tuple, got {asked!r}; write platforms=({asked!r},)")
    if asked is not None and not asked:
        raise ValueError("export: platforms is empty; name at least one, or pass None for the default backend's")
    names = tuple(dict.fromkeys(asked or (default_export_platform(),)))
    for name in names:
        if name == "gpu":
            raise ValueError("export: 'gpu' could be two platforms; name 'cuda' or 'rocm', or both")
        if name not in PLATFORMS:
            raise ValueError(f"export: there is no platform {name!r}; there are {', '.join(PLATFORMS)}")
    return names


def _exported(
    traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...], mesh: Any
) -> Exported:
    """The exported function of a call, for the devices of a mesh, or for one device if that is None."""
    whole, name = traced._call.trace, traced.fun_name
    trace = pipeline.expanded(whole)
    call = traced._call._replace(trace=trace)
    _check(name, trace)
    check_determined(call.avals, trace.jaxpr.out_avals)
    place = placement_of(call, traced._ahead.asked(), mesh)
    # An input that nothing reads may still be where the value of a symbolic size comes from.
    keeps_all = any(is_symbolic_shape(a.shape) for a in trace.jaxpr.in_avals)
    computed = tuple(a.dtype != float0 for a in trace.jaxpr.out_avals)
    stage = _with_data(pipeline.front(trace.jaxpr, pipeline.PipelineOptions(keep_unused=keeps_all)))
    used = stage.used_inputs
    count = len(trace.captured)
    constants = ndarrays(compress(trace.captured, used[:count]))
    ins = (*[None] * len(constants), *compress(place.ins, used[count:]))
    of_main = place._replace(ins=ins, outs=tuple(compress(place.outs, computed)))
    ins, outs = without_devices(place.ins), without_devices(place.outs)
    kept = tuple(i for i, u in enumerate(used[count:]) if u)
    names = [trace.names[i] for i in kept], list(compress(_result_names(trace), computed))
    return Exported(
        fun_name=name,
        in_tree=call.in_tree,
        in_avals=typed(call.avals, ins),
        out_tree=trace.out_tree,
        out_avals=typed(trace.jaxpr.out_avals, outs),
        platforms=platforms,
        disabled_safety_checks=checks,
        mlir_module_serialized=_artifact(stage, name, platforms, constants, checks, of_main, names),
        module_kept_var_idx=kept,
        nr_devices=place.device_count,
        _in_named_shardings=ins,
        _out_named_shardings=outs,
        _names=tuple(trace.names),
        _vouched=_calls_known_modules(stage.jaxpr),
        _get_vjp=lambda primal: _exported_vjp(primal, whole, [True] * len(primal.out_avals), place.mesh),
    )


def _with_data(stage: pipeline.PipelineStage) -> pipeline.PipelineStage:
    """The program without inputs of dtype float0, which nothing computes with."""
    marks = [a.dtype != float0 for a in stage.jaxpr.in_avals]
    if all(marks):
        return stage
    left = iter(marks)
    used = tuple(u and next(left) for u in stage.used_inputs)
    return stage._replace(jaxpr=stage.jaxpr.replace(invars=chosen(stage.jaxpr.invars, marks)), used_inputs=used)


def _calls_known_modules(jaxpr: Jaxpr) -> bool:
    """Whether it is known who made the exported functions that a program calls."""
    modules = [eqn.params["module"] for eqn in jaxpr.eqns if eqn.primitive is call_exported_p]
    bodies = [inner for eqn in jaxpr.eqns if eqn.primitive.higher_order for inner in subjaxprs(eqn)]
    return all(module.vouched for module in modules) and all(map(_calls_known_modules, bodies))


def _result_names(trace: Trace) -> list[str]:
    """The names of the results, such as `result['y'][0]`."""
    paths, _ = tree_flatten_with_path(example_of(trace.out_tree))
    return [f"result{keystr(path)}" for path, _ in paths]


def _check(name: str, trace: Trace) -> None:
    if any(isinstance(x, Tracer) for x in trace.captured):
        raise TypeError(
            f"export: {name} uses a traced value of the function around it; pass it as an argument, or export outside"
        )
    if _OF_PYTHON & trace.jaxpr.effects:
        _refuse_python(name)
    if ffi_effect in trace.jaxpr.effects:
        raise NotImplementedError(
            f"export: {name} calls an FFI target with side effects, which a caller of the result might drop; "
            "leave out has_side_effect, and use the target's results"
        )


def _refuse_python(name: str) -> None:
    raise NotImplementedError(
        f"export: {name} calls Python functions (debug.print, pure_callback, ...), which another process has not; take "
        "them out"
    )


def _artifact(
    stage: pipeline.PipelineStage,
    name: str,
    platforms: tuple[str, ...],
    constants: Sequence[np.ndarray],
    checks: Sequence[DisabledSafetyCheck],
    place: ExportPlacement,
    names: tuple[Sequence[str], Sequence[str]],
) -> bytes:
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.interface_names import name_interface
    from xlamini.lowering.symbolic import lower_portable
    from xlamini.runtime.files.module_reader import kernels_of
    from xlamini.runtime.files.portable import artifact_of

    of_mesh = None if place.mesh is None else place
    several = place.mesh is not None and place.mesh.size > 1
    options = pipeline.PipelineOptions(name, tuple(Platform(p, several) for p in platforms))
    jaxpr = pipeline.back(stage, options).jaxpr
    module, callbacks = lower_portable(jaxpr, name, platforms, constants, of_mesh, names[0])
    if callbacks:
        _refuse_python(name)
    check_kernels(name, kernels_of(module), checks)
    name_interface(module, *names)
    return artifact_of(module)


def _exported_vjp(primal: Exported, trace: Trace, computed: Sequence[bool], mesh: Any) -> Exported:
    """The pullback of an exported function, exported for the same platforms and devices.

    `computed` marks the results that the trace has. Cotangents are sharded as what they are the cotangents of.
    """
    count, marks = len(primal.in_avals), [is_differentiable(a) for a in primal.in_avals]

    def pullback(*args_and_cotangents: Any) -> tuple[Any, ...]:
        args, cotangents = args_and_cotangents[:count], args_and_cotangents[count:]

        def of_some(*some: Any) -> tuple[Any, ...]:
            leaves = merged(marks, some, chosen(args, inverse(marks)))
            return tuple(evaluate(trace.jaxpr, [*trace.captured, *leaves]))

        _, pull = vjp(of_some, *chosen(args, marks))
        return pull(tuple(chosen(cotangents, computed)))

    pullback.__name__ = f"{primal.fun_name}_vjp"
    avals = (*primal.in_avals, *map(tangent_aval, primal.out_avals))
    ins, outs = primal._in_named_shardings, of_cotangents(primal._in_named_shardings)
    pairs = zip(avals, (*ins, *of_cotangents(primal._out_named_shardings)), strict=True)
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s) for a, s in pairs]
    wanted = tuple(chosen(outs, marks))
    traced: Any = jit(pullback, out_shardings=wanted if any(wanted) else None).trace(*types)
    found = _exported(traced, primal.platforms, primal.disabled_safety_checks, mesh)
    return _with_all(found, traced._call.trace, primal, marks, mesh)


def _with_all(found: Exported, trace: Trace, primal: Exported, marks: Sequence[bool], mesh: Any) -> Exported:
    """The pullback with results for all arguments; those not marked are of dtype float0, and are not traced."""
    zeros = [tangent_aval(a) for a in chosen(primal.in_avals, inverse(marks))]
    return dataclasses.replace(
        found,
        out_tree=structure((0,) * len(marks)),
        out_avals=tuple(merged(marks, found.out_avals, zeros)),
        _out_named_shardings=tuple(merged(marks, found._out_named_shardings, [None] * len(zeros))),
        _get_vjp=lambda pullback: _exported_vjp(pullback, trace, marks, mesh),
    )
