"""C++ dispatch of jitted calls: the fast path from Python arguments to a running executable, without Python code.

C++ flattens the arguments and looks up their signature: the pytree; for each leaf shape, dtype,
weak type, sharding and whether it is committed; static arguments; the flags that affect dispatch.
A new signature goes to `cache_miss(*args, **kwargs)`, which runs the call and returns the tuple
`(outputs, fast path or None, False)`. With a FastPath the signature never comes back; with None it
always does, and so does a call with an argument of a type that C++ does not handle: a tracer, a key, a string.

By itself C++ would read the memory of a NumPy argument after the call has returned: it shares what is aligned and
copies what is large in another thread. So a program that runs later would see what the caller has written there since.
Such an argument is therefore copied here, by the hook that C++ calls for arguments with a layout of their own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from jaxlib import _jax

from xlamini.core import PyTreeDef, ShapedArray, jaxlib_types, trim
from xlamini.core.errors import DeletedArrayError
from xlamini.core.flags.device_flags import zero_copy_arguments
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.runtime.arrays.array import Array
from xlamini.runtime.arrays.layout import order_of, relaid, use
from xlamini.runtime.arrays.to_device import ArrayImpl, device_put_value, host_copier
from xlamini.runtime.execution.executable import CompiledModule
from xlamini.runtime.exit_gate import pass_gate, process
from xlamini.runtime.sharding import Sharding

CacheMiss = Callable[..., tuple[Any, "FastPath | None", bool]]

post_hook: Final = jaxlib_types.Config(
    "post_hook", None, include_in_jit_key=False, include_in_trace_context=False
)
"""A hook that C++ calls after each call on the fast path, with function, args, kwargs, outputs; None for no hook."""

PjitFunction: type = _jax.PjitFunction
CAPACITY = 4096
_cache = _jax.PjitFunctionCache(capacity=CAPACITY)
cached_signatures: Callable[[], int] = _cache.size
clear_signatures: Callable[[], None] = _cache.clear


class FastPath(NamedTuple):
    """The fast-path data of one signature. The field names are jaxlib's; make one with `fast_path`."""

    xla_executable: _jax.LoadedExecutable
    out_pytree_def: PyTreeDef
    in_shardings: Sequence[Sharding]
    out_shardings: Sequence[Sharding]
    out_avals: Sequence[ShapedArray]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[Callable[[np.ndarray], ArrayImpl] | None]
    const_args: Sequence[ArrayImpl]


def fast_path(
    executable: CompiledModule,
    out_tree: PyTreeDef,
    *,
    used_inputs: Sequence[bool],
    const_args: Sequence[ArrayImpl] = (),
    leaves: Sequence[Any] = (),
    committed: bool = False,
) -> FastPath:
    """The fast path that `cache_miss` returns, so that C++ runs this signature from now on.

    Args:
      executable: the executable, which takes the used constants, then the used leaves of the arguments.
      out_tree: the pytree of the function's result; one leaf for each output.
      used_inputs: for each constant, then for each leaf of the arguments, whether the executable uses it.
      const_args: the hidden constants, already on the executable's devices.
      leaves: the leaves of the arguments of this call; those of NumPy are copied in each call of the signature.
      committed: whether the outputs are committed to their devices.
    """
    if sum(used_inputs) != len(executable.in_avals) or out_tree.num_leaves != len(executable.out_avals):
        raise ValueError(
            f"{sum(used_inputs)} inputs are used and out_tree has {out_tree.num_leaves} leaves, but the "
            f"executable takes {len(executable.in_avals)} and returns {len(executable.out_avals)}"
        )
    return FastPath(
        executable.loaded,
        out_tree,
        executable.in_shardings,
        executable.out_shardings,
        executable.out_avals,
        [committed] * len(executable.out_avals),
        list(used_inputs),
        _copiers(executable, [x for x, used in zip([*const_args, *leaves], used_inputs, strict=True) if used]),
        list(const_args),
    )


def _copiers(executable: CompiledModule, inputs: Sequence[Any]) -> list[Callable[[np.ndarray], ArrayImpl] | None]:
    """For each input the function that copies it, if it is one of NumPy's; C++ takes it for a layout.

    Scalars have the signature of arrays without dimensions.
    """
    types = zip(executable.in_avals, executable.in_shardings, strict=True)
    copied = not zero_copy_arguments.value
    return [
        host_copier(*type_) if copied and isinstance(x, np.ndarray | np.generic) else None
        for x, type_ in zip(inputs, types, strict=True)
    ]


def cpp_jit(
    name: str,
    fun: Callable,
    cache_miss: CacheMiss,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    cache_key: Hashable = (),
) -> _jax.PjitFunction:
    """A C++ function that calls `cache_miss` for each new signature.

    Args:
      name: the function's name in profiles and error messages.
      fun: the user's function, called directly while flag `disable_jit` is on. It and `cache_key`
        identify the cached signatures, which are freed with it.
      cache_miss: see the module's docstring; returning anything but such a tuple crashes the process.
      static_argnums: the positions of static arguments, non-negative and ascending.
      static_argnames: the names of static arguments passed by keyword.
      cache_key: all else that affects a call: donation, device, compiler options, ….
        It lives as long as `fun`, so it must not contain an `id()`, which Python may reuse.
    """

    def miss(*args: Any, **kwargs: Any) -> tuple[Any, FastPath | None, bool]:
        if process.is_barred:
            pass_gate()
        try:
            return cache_miss(*args, **kwargs)
        except BaseException as error:
            trim(error)
            if not isinstance(error, DeletedArrayError):
                # C++ would send a signature whose first call failed to Python for ever, so its cache is cleared. Not
                # for a deleted array: C++ raised before it looked up a signature, and clearing makes other threads
                # wait for a new entry while their arguments may be deleted, which C++ does not handle.
                alive()._clear_cache()
            raise

    function = _jax.pjit(
        name,
        fun,
        miss,
        list(static_argnums),
        list(static_argnames),
        cache_key,
        dispatch_registry,
        _shard_argument,
        _cache,
    )
    alive: Callable[[], Any] = weakref.ref(function)
    return function


def _shard_argument(x: Any, sharding: Sharding, copier: Callable[[Any], ArrayImpl] | None) -> ArrayImpl:
    """The hook that C++ calls to copy a NumPy argument, or to reshard one whose sharding is not the executable's."""
    if copier is not None:
        return copier(x)
    placed = device_put_value(x, sharding, committed=False)
    return relaid([placed], [order_of(x)])[0] if use.any_other else placed


def set_tracer_class(cls: type) -> None:
    """Register a tracer class: C++ sends such arguments to `cache_miss`, and they become instances of Array."""
    _jax.set_tracer_class(cls)
    Array.register(cls)


_jax.jax_jit.set_post_hook_state(post_hook)
