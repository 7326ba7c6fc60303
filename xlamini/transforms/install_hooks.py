"""Import-time wiring: the functions of upper layers that lower layers call (core/hooks.py), filled in one place.

Only `make_array` is filled elsewhere, by `xlamini.numpy`, which lies above this layer.
"""
from __future__ import annotations

from typing import Any

import xlamini.core.tracing.concretization  # gives tracers their conversions to Python numbers
import xlamini.primitives.base.operators  # gives tracers their operators
from xlamini.core import Tracer, api_boundary_methods, hooks, inline_cached
from xlamini.core.flags.config import config
from xlamini.primitives import reshard_as
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.indexing.gather import gather_p
from xlamini.primitives.indexing.scatter import scatter_add_p
from xlamini.primitives.shape.pad import pad_p
from xlamini.primitives.shape.slice import slice_p
from xlamini.primitives.shape.symbolic_sizes import assume_unequal, size_value
from xlamini.runtime.execution.call_failures import explain
from xlamini.runtime.execution.dispatch import set_tracer_class
from xlamini.runtime.meshes.current_mesh import sharding_of_type
from xlamini.runtime.meshes.named_sharding import split_in_type
from xlamini.staging.compile.listeners import listen
from xlamini.staging.run.diagnostics.eviction import evict_programs
from xlamini.staging.run.eager.run_equation import evaluate_primitive
from xlamini.staging.run.jit.evaluate_on_refs import evaluate_on_refs
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import visible
from xlamini.transforms.sharding.device_put import in_order

# The functions below import when they are called, because most programs call none of them and the import would be paid
# by all.


def _cast_varying(x: Any, axes: frozenset[Any]) -> Any:
    from xlamini.primitives.collectives.varying import varying_along

    return varying_along(x, axes)


def _cast_sums(x: Any, split: Any) -> Any:
    from xlamini.primitives.collectives.varying import with_sums

    return with_sums(x, split)


def _jit_with_buckets(*args: Any) -> Any:
    from xlamini.transforms.buckets.jit_buckets import Bucketed

    return Bucketed(*args)


def _zeros(aval: Any) -> Any:
    from xlamini.primitives.base.tangent_ops import zeros

    return visible([zeros(aval)])[0]


def _hi_variable(x: Any) -> Any:
    from xlamini.primitives.base.hi_values import as_variable

    return as_variable(x)


def _local_array(aval: Any, mesh: Any, manual: frozenset[Any], spec: Any) -> Any:
    from xlamini.transforms.shard_map.specs import local_array

    return local_array(aval, mesh, manual, spec)


def _global_array(aval: Any, mesh: Any, spec: Any) -> Any:
    from xlamini.transforms.shard_map.manual_axes import manual_here
    from xlamini.transforms.shard_map.specs import global_array

    return global_array(aval, mesh, frozenset(mesh.axis_names) - manual_here(), spec)


def _results_with_tangents(eqn: Any) -> Any:
    from xlamini.interpreters.jvp import results_with_tangents

    return results_with_tangents(eqn)


def _evaluate_jaxpr(jaxpr: Any, operands: Any) -> list[Any]:
    from xlamini.interpreters.evaluate import evaluate

    return visible(evaluate(jaxpr, operands))


def _format_jaxpr(jaxpr: Any, **options: Any) -> str:
    from xlamini.core.program.printing import format_jaxpr

    return format_jaxpr(jaxpr, **options)


def _format_equation(eqn: Any) -> str:
    from xlamini.core.program.printing import format_equation

    return format_equation(eqn)


hooks.install(
    evaluate=evaluate_primitive,
    evaluate_jaxpr=_evaluate_jaxpr,
    evaluate_on_refs=evaluate_on_refs,
    cast_varying=_cast_varying,
    cast_sums=_cast_sums,
    reshard_as=reshard_as,
    results_with_tangents=_results_with_tangents,
    sharding_of=sharding_of_type,
    split_in_type=split_in_type,
    format_jaxpr=_format_jaxpr,
    format_equation=_format_equation,
    hi_variable=_hi_variable,
    local_array=_local_array,
    global_array=_global_array,
    zeros=_zeros,
    jit_with_buckets=_jit_with_buckets,
    size_value=size_value,
    assume_unequal=assume_unequal,
    evict_programs=evict_programs,
    in_order=in_order,
    trace_library_call=inline_cached,
    explain_error=explain,
)
set_tracer_class(Tracer)
listen()

# A primitive whose transpose is written in a later module.
slice_p.adjoint = pad_p
dynamic_slice_p.adjoint = dynamic_update_slice_p
gather_p.adjoint = scatter_add_p

api_boundary_methods(type(config))
api_boundary_methods(ShapeDtypeStruct)
