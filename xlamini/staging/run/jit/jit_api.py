"""`jit`, the public function: it checks its options and wraps the user's function."""
from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from xlamini.core import hooks
from xlamini.runtime.execution.dispatch import PjitFunction
from xlamini.staging.compile.placement import asked_place
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.jit_options import Inline, Options
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.run.jit.pickling import pickled
from xlamini.staging.trace.arguments import check_callable
from xlamini.staging.trace.static_args import Names, Numbers, Selected, check_apart

if TYPE_CHECKING:
    from xlamini.staging.aot.jit_type import JitFunction

P = ParamSpec("P")
R = TypeVar("R")


class JitOptions(TypedDict, total=False):
    """The keyword arguments of `jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: Numbers
    static_argnames: Names
    donate_argnums: Numbers
    donate_argnames: Names
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool | Inline
    compiler_options: dict[str, Any] | None
    outline: bool | None
    max_compiles: int | None
    buckets: Mapping[str, Any] | None
    shapes_specs: Any


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> JitFunction[P, R]: ...
@overload
def jit(fun: None = None, /, **options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    outline: bool | None = None,
    max_compiles: int | None = None,
    buckets: Mapping[str, Any] | None = None,
    shapes_specs: Any = None,
) -> Any:
    """Compile a function with XLA; it is traced once for each signature of its arguments.

    Arguments are arrays, numbers, or containers of them. Arguments in `static_argnums`/`static_argnames` are passed to
    Python unchanged, must be hashable, and are part of the signature; where both are given, each is taken as it is, and
    positions and names are not completed from the function's signature. Outputs may reuse the memory of arguments in
    `donate_argnums`/`donate_argnames`; those arrays cannot be used afterwards. `in_shardings` and `out_shardings` are
    shardings, or tree prefixes of them, for the tuple of arguments without the static ones and for the output; None
    leaves the choice to the arrays, and to the compiler. Inside another traced function the call becomes a `jit`
    equation, or, with `inline`, its equations. On the CPU a block of equations that a long program repeats, such as a
    layer of a model, is compiled once and called; `outline=False` turns that off, and
    `lower(...).outline_report()` lists the blocks. With `max_compiles` a call that would compile it once more than that
    raises TooManyCompilationsError, which names what changed.

    With `buckets` it is compiled for a few sizes of arrays and called with any. `shapes_specs` are texts as those of
    `export.symbolic_shape` for the arguments without the static ones, or for containers of them, such as
    `(None, "_, n")`. The sizes of a symbol are "pow2", powers of two; a number, its multiples; or a list of sizes.
    Arguments are padded on the host, and outputs cut; an operation whose result the padding would change is a
    PaddingError with its line. Results, also derivatives that `fun` takes, are those of the arrays as they are. Inside
    of another traced function the buckets do nothing, so `jit` of all of a training step is the place for them.

    The result has the methods `trace`, `lower`, `eval_shape`, `cost` (but not with buckets), `compilations` and
    `clear_cache`. Usable as a decorator, with and without options.

    >>> xlamini.jit(lambda x: x + 1)(2)
    Array(3, dtype=int32, weak_type=True)
    """
    if fun is None:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **options)
    check_callable("jit", fun)
    if buckets is not None:
        options = {k: v for k, v in locals().items() if k not in ("fun", "buckets", "shapes_specs")}
        return hooks.jit_with_buckets(fun, jit, buckets, shapes_specs, options)
    if max_compiles is not None and (type(max_compiles) is not int or max_compiles < 0):
        raise TypeError(f"jit: max_compiles must be a number of compilations or None, got {max_compiles!r}")
    if isinstance(inline, Inline):
        inline = inline is Inline.JAX_EARLY
    _check_bools(keep_unused=keep_unused, inline=inline)
    static = Selected.of_jit("static", fun, static_argnums, static_argnames)
    donate = Selected.of_jit("donate", fun, donate_argnums, donate_argnames)
    check_apart(fun, static, donate)
    where = asked_place(device, backend)
    shardings = in_shardings, out_shardings
    options = Options(static, donate, keep_unused, inline, where, compiler_options, outline, *shardings, max_compiles)
    return wrapped(Jitted(fun, options))


def _check_bools(**options: Any) -> None:
    for name, value in options.items():
        if not isinstance(value, bool):
            raise TypeError(f"jit: {name} must be True or False, got {value!r} of type {type(value).__name__}")


copyreg.pickle(PjitFunction, pickled)
