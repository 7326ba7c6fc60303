"""The public function `export`: a jitted function as portable StableHLO, also for platforms that are not attached."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from xlamini.core import Tracer, example_of, float0, keystr, tangent_aval, tree_flatten_with_path
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import is_own
from xlamini.core.program.effects import debug_effect, ffi_effect, io_effect, ordered_debug_effect, ordered_io_effect
from xlamini.core.program.form import PLATFORMS, Platform
from xlamini.interpreters.evaluate import evaluate
from xlamini.runtime.devices.platforms import default_backend
from xlamini.staging import Trace, jit
from xlamini.staging.aot.captured_arrays import ndarrays
from xlamini.staging.aot.jit_type import Wrapped
from xlamini.staging.aot.stages import Traced
from xlamini.staging.compile import pipeline
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.derivatives.vjp import vjp
from xlamini.transforms.export.artifact import Exported
from xlamini.transforms.export.safety import DisabledSafetyCheck, check_kernels
from xlamini.transforms.export.shardings import (
    ExportPlacement,
    mesh_of,
    of_cotangents,
    placement_of,
    typed,
    without_devices,
)

_OF_PYTHON = {io_effect, ordered_io_effect, debug_effect, ordered_debug_effect}


def default_export_platform() -> str:
    """The platform that `export` uses by default: the default backend.

    >>> default_export_platform()
    'cpu'
    """
    found = default_backend()
    return {"gpu": "cuda"}.get(found, found)


def export(
    fun_jit: Wrapped,
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
    place = placement_of(call, traced._ahead.asked(), mesh)
    computed = tuple(a.dtype != float0 for a in trace.jaxpr.out_avals)
    stage = pipeline.front(trace.jaxpr)
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
        _get_vjp=lambda primal: _exported_vjp(primal, whole, place.mesh),
    )


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
    from xlamini.lowering.module import lower_jaxpr
    from xlamini.lowering.multi_platform import lower_multi_platform
    from xlamini.runtime.files.module_reader import kernels_of
    from xlamini.runtime.files.portable import artifact_of

    of_mesh = None if place.mesh is None else place
    several = place.mesh is not None and place.mesh.size > 1
    options = pipeline.PipelineOptions(name, tuple(Platform(p, several) for p in platforms))
    jaxpr = pipeline.back(stage, options).jaxpr
    if len(platforms) == 1:
        module, callbacks, _ = lower_jaxpr(jaxpr, name, platforms[0], constants=constants, placement=of_mesh)
    else:
        module, callbacks = lower_multi_platform(jaxpr, name, platforms, constants, of_mesh)
    if callbacks:
        _refuse_python(name)
    check_kernels(name, kernels_of(module), checks)
    name_interface(module, *names)
    return artifact_of(module)


def _exported_vjp(primal: Exported, trace: Trace, mesh: Any) -> Exported:
    """The pullback of an exported function, exported for the same platforms and devices.

    Cotangents are sharded as what they are the cotangents of.
    """
    count = len(primal.in_avals)

    def pullback(*args_and_cotangents: Any) -> tuple[Any, ...]:
        args, cotangents = args_and_cotangents[:count], args_and_cotangents[count:]
        _, pull = vjp(lambda *leaves: tuple(evaluate(trace.jaxpr, [*trace.captured, *leaves])), *args)
        return pull(tuple(cotangents))

    pullback.__name__ = f"{primal.fun_name}_vjp"
    avals = (*primal.in_avals, *map(tangent_aval, primal.out_avals))
    ins, outs = primal._in_named_shardings, of_cotangents(primal._in_named_shardings)
    pairs = zip(avals, (*ins, *of_cotangents(primal._out_named_shardings)), strict=True)
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s) for a, s in pairs]
    traced: Any = jit(pullback, out_shardings=outs if any(outs) else None).trace(*types)
    return _exported(traced, primal.platforms, primal.disabled_safety_checks, mesh)
