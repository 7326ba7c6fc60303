"""Hooks: the functions of upper layers that lower layers call.

Imports point downward, so a lower layer calls an upper one through a hook: `hooks.evaluate(primitive, operands,
params)`. `transforms/install_hooks.py` fills them while xlamini is imported. A hook that is called before that raises.
They are module globals because a call then costs one attribute load.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np


def _not_installed(name: str) -> Callable[..., NoReturn]:
    def fail(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"hook {name!r} is called before it is installed; import xlamini, not a layer of it alone")

    return fail


evaluate: Callable[[Any, Sequence[Any], dict[str, Any]], Any] = _not_installed("evaluate")
"""`evaluate(primitive, operands, params)`: run a primitive eagerly."""

evaluate_jaxpr: Callable[[Any, Sequence[Any]], list[Any]] = _not_installed("evaluate_jaxpr")
"""`evaluate_jaxpr(jaxpr, operands)`: the outputs of a jaxpr without constvars, for the user."""

evaluate_on_refs: Callable[[Any, Sequence[Any]], list[Any]] = _not_installed("evaluate_on_refs")
"""`evaluate_on_refs(jaxpr, operands)`: the outputs of a jaxpr of refs, some of which are among the operands."""

cast_varying: Callable[[Any, frozenset[Any]], Any] = _not_installed("cast_varying")
"""`cast_varying(x, axes)`: the value typed as varying along these manual axes too."""

cast_sums: Callable[[Any, Any], Any] = _not_installed("cast_sums")
"""`cast_sums(x, split)`: the value unreduced and reduced along manual axes as the sharding of a type says."""

reshard_as: Callable[[Any, Any], Any] = _not_installed("reshard_as")
"""`reshard_as(x, split)`: the value resharded to the sharding of a type."""

sharding_of: Callable[[Any], Any] = _not_installed("sharding_of")
"""`sharding_of(aval)`: the sharding in a type, as a NamedSharding."""

split_in_type: Callable[[Any, int], Any] = _not_installed("split_in_type")
"""`split_in_type(sharding, ndim)`: what the type of an array placed so says of it; None if nothing."""

local_array: Callable[[Any, Any, frozenset[Any], Any], Any] = _not_installed("local_array")
"""`local_array(aval, mesh, manual, spec)`: the type of a device's shard in a shard_map."""

global_array: Callable[[Any, Any, Any], Any] = _not_installed("global_array")
"""`global_array(aval, mesh, spec)`: the type of the array that shards of this type form."""

hi_variable: Callable[[Any], Any] = _not_installed("hi_variable")
"""`hi_variable(x)`: a value of a user's class that is made of traced arrays, as a traced value; else None."""

read_ref: Callable[[Any], Any] = _not_installed("read_ref")
"""`read_ref(tracer)`: the value of a ref of the program being traced, by an equation."""

write_ref: Callable[[Any, Any], None] = _not_installed("write_ref")
"""`write_ref(tracer, value)`: write the value of such a ref, by an equation."""

ref_of: Callable[[Any], Any] = _not_installed("ref_of")
"""`ref_of(cell)`: the user's handle of the cell of a ref."""

zeros: Callable[[Any], Any] = _not_installed("zeros")
"""`zeros(aval)`: an array of zeros of this type, for the user."""

size_value: Callable[..., Any] = _not_installed("size_value")
"""`size_value(size, dtype=None, weak_type=True)`: a symbolic size as a number of the program that is traced."""

assume_unequal: Callable[[Any, Any], None] = _not_installed("assume_unequal")
"""`assume_unequal(x, y)`: let the program that is traced be for symbolic sizes x and y that differ."""

jit_with_buckets: Callable[..., Any] = _not_installed("jit_with_buckets")
"""`jit_with_buckets(fun, jit, buckets, shapes_specs, options)`: the function that is jitted for a few sizes."""

make_array: Callable[[Any, np.dtype], Any] = _not_installed("make_array")
"""`make_array(x, dtype)`: what `jnp.float32(x)` returns."""

format_jaxpr: Callable[..., str] = _not_installed("format_jaxpr")
"""`format_jaxpr(jaxpr, **options)`: the text of a jaxpr."""

format_equation: Callable[[Any], str] = _not_installed("format_equation")
"""`format_equation(eqn)`: the text of one equation."""

evict_programs: Callable[[int], None] = _not_installed("evict_programs")
"""`evict_programs(most)` drops programs that can be compiled again, and leaves `most` of the user's."""


results_with_tangents: Callable[[Any], Sequence[bool]] = _not_installed("results_with_tangents")
"""`results_with_tangents(eqn)`: a mask of the results that have a tangent where all operands have one."""


def explain_error(error: BaseException) -> None:
    """Put the cause of an error into it before the user sees it; does nothing until it is installed.

    An error that stops the import itself must reach the user as it is.
    """


handed_out: Callable[[Any], Any] | None = None
"""`handed_out(closed)`: a program as the user gets it, where that is not as it is; as_jax gives it JAX's form."""


def primitive_made(primitive: Any) -> None:
    """Told of each primitive; as_jax makes it take JAX's params."""


def public_function(fun: Any) -> Any:
    """A function as a public module has it; as_jax notes which equations it makes."""
    return fun


time_report: Callable[[bytes, Sequence[Any]], Any] = _not_installed("time_report")
"""`time_report(recorded, programs)`: where the time of a recording went, which inspection says."""

read_trace: Callable[[Any], Any] = _not_installed("read_trace")
"""`read_trace(path)`: the same of a trace in files."""

library_kernels: Callable[[str], Any] = _not_installed("library_kernels")
"""`library_kernels(name)`: the kernels of an operation, a module of nn/kernels; it is loaded by who compiles one."""

in_order: Callable[..., Any] = _not_installed("in_order")
"""`in_order(x, order)`: an array with its dimensions in another order in memory."""

trace_library_call: Callable[..., Any] = _not_installed("trace_library_call")
"""`trace_library_call(fun, args, kwargs)`: call a composite while something is traced."""

call_copied: Callable[[Any, Sequence[Any]], None] | None = None
"""`call_copied(jaxpr, equations)`: told of copies of what a library function adds; as_jax notes the calls in it."""

_NAMES = frozenset({*__annotations__, "explain_error", "primitive_made", "public_function"})


def install(**functions: Callable[..., Any]) -> None:
    """Fill hooks, by name."""
    unknown = functions.keys() - _NAMES
    if unknown:
        raise TypeError(f"no such hook: {', '.join(sorted(unknown))}")
    globals().update(functions)
