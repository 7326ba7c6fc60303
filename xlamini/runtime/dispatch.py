"""The C++ path of a jitted call: from Python arguments to a running executable, no Python between.

C++ flattens the arguments and looks their signature up: the pytree; for each leaf shape, dtype,
weak type, sharding and whether it is committed; static arguments; the flags that affect dispatch.
A new signature goes to `cache_miss(*args, **kwargs)`, which runs the call and returns the tuple
`(outputs, fast path or None, False)`. With a FastPath the signature never comes back; with None it
always does, and so does a call with an argument that C++ does not know: a tracer, a key, a string.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from jaxlib import _jax

from xlamini.core.api_boundary import trim
from xlamini.core.avals import ShapedArray
from xlamini.core.errors import DeletedArrayError
from xlamini.core.pytree import PyTreeDef
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.runtime.array import Array
from xlamini.runtime.executable import CompiledModule
from xlamini.runtime.sharding import Sharding
from xlamini.runtime.to_device import ArrayImpl, device_put_value

CacheMiss = Callable[..., tuple[Any, "FastPath | None", bool]]

post_hook = _jax.config.Config(
    "post_hook", None, include_in_jit_key=False, include_in_trace_context=False
)
"""None, or what C++ calls after a call on the fast path: with function, args, kwargs, outputs."""

CAPACITY = 4096
_cache = _jax.PjitFunctionCache(capacity=CAPACITY)
cached_signatures: Callable[[], int] = _cache.size
clear_signatures: Callable[[], None] = _cache.clear


class FastPath(NamedTuple):
    """How C++ runs one signature. The field names are jaxlib's; make one with `fast_path`."""

    xla_executable: _jax.LoadedExecutable
    out_pytree_def: PyTreeDef
    in_shardings: Sequence[Sharding]
    out_shardings: Sequence[Sharding]
    out_avals: Sequence[ShapedArray]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[None]
    const_args: Sequence[ArrayImpl]


def fast_path(
    executable: CompiledModule,
    out_tree: PyTreeDef,
    *,
    kept: Sequence[bool],
    const_args: Sequence[ArrayImpl] = (),
    committed: bool = False,
) -> FastPath:
    """What `cache_miss` returns to have this signature run in C++ from now on.

    Args:
      executable: takes the kept constants, then the kept leaves of the arguments.
      out_tree: the structure of what the function returns; one leaf for each output.
      kept: for each constant, then for each leaf of the arguments, whether the executable takes it.
      const_args: hidden constants, already where the executable runs.
      committed: whether the outputs are bound to their devices.
    """
    if sum(kept) != len(executable.in_avals) or out_tree.num_leaves != len(executable.out_avals):
        raise ValueError(
            f"{sum(kept)} arrays are kept and out_tree has {out_tree.num_leaves} leaves, but the "
            f"executable takes {len(executable.in_avals)} and returns {len(executable.out_avals)}"
        )
    return FastPath(
        executable.loaded,
        out_tree,
        executable.in_shardings,
        executable.out_shardings,
        executable.out_avals,
        [committed] * len(executable.out_avals),
        list(kept),
        [None] * len(executable.in_avals),
        list(const_args),
    )


def cpp_jit(
    name: str,
    fun: Callable,
    cache_miss: CacheMiss,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    cache_key: Hashable = (),
) -> _jax.PjitFunction:
    """A C++ function that calls `cache_miss` for what it has not seen.

    Args:
      name: what it is called in profiles and error messages.
      fun: the user's function, called directly while flag `disable_jit` is on. It and `cache_key`
        name the cached signatures, which die with it.
      cache_miss: see the module's docstring; returning anything else than such a tuple crashes.
      static_argnums: positions of static arguments, not negative, ascending.
      static_argnames: their names when they are given by keyword.
      cache_key: all else that changes what a call means: donation, device, compiler options, ….
        It is held as long as `fun` lives, so an `id()`, which may come again, will not do.
    """

    def miss(*args: Any, **kwargs: Any) -> tuple[Any, FastPath | None, bool]:
        try:
            return cache_miss(*args, **kwargs)
        except BaseException as error:
            trim(error)
            if not isinstance(error, DeletedArrayError):
                # C++ would send a signature whose first call failed through Python for ever. With a deleted array it
                # has not looked for one; and clearing makes other threads wait for a new one, while what they hold
                # may be deleted, which C++ does not expect.
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


def _shard_argument(x: Any, sharding: Sharding, layout: Any) -> ArrayImpl:
    """C++ asks for this where an argument is not yet spread over the devices as it must be."""
    return device_put_value(x, sharding, committed=False)


def set_tracer_class(cls: type) -> None:
    """Let C++ send arguments of this class to `cache_miss`, and make them instances of Array."""
    _jax.set_tracer_class(cls)
    Array.register(cls)


_jax.jax_jit.set_post_hook_state(post_hook)
