"""make_jaxpr and eval_shape: tracing without running."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Literal, Never, overload

from xlamini.core import Axis, ClosedJaxpr, named_axis, tree_map
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.form import PLATFORMS
from xlamini.primitives.base.tangent_ops import full
from xlamini.runtime import Array
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.arguments import OutputTypeError, check_callable
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.static_args import Numbers


@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Numbers = (), axis_env: Any = None,
    return_shape: Literal[False] = False, *, platform: str | None = None,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Numbers = (), axis_env: Any = None, *, return_shape: Literal[True],
    platform: str | None = None,
) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Numbers = (), axis_env: Any = None, return_shape: bool = False, *,
    platform: str | None = None,
) -> Callable[..., Any]: ...
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Numbers = (), axis_env: Any = None, return_shape: bool = False, *,
    platform: str | None = None,
) -> Callable[..., Any]:
    """A function that traces `fun` for its arguments and returns the jaxpr, closed over captured arrays.

    Arguments are arrays, numbers, or `ShapeDtypeStruct`s; nothing is computed. With `return_shape` it returns a pair,
    the jaxpr and the types of the outputs. `axis_env` is a list of pairs (name, size), the axes that collectives may
    refer to. A ref is an input of the type `Ref{…}`, or captured if `fun` closes over it; reading and writing it are
    equations.

    With a `platform`, "cpu", "cuda", "rocm" or "tpu", it is the program that is lowered for that: what the platform
    computes by other operations is a `form` of these. ValueError for another name.

    >>> print(xlamini.make_jaxpr(lambda x: x * x)(2.0))
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    >>> print(xlamini.make_jaxpr(lax.one_minus_square, platform="tpu")(2.0))
    { lambda ; a:f32[]. let
        b:f32[] = form[
          of=one_minus_square
          jaxpr={ lambda ; c:f32[]. let
              d:f32[] = add 1.0:f32[] c
              e:f32[] = sub 1.0:f32[] c
              f:f32[] = mul d e
            in (f,) }
        ] a
      in (b,) }
    """
    check_callable("make_jaxpr", fun)
    _check_platform(platform)
    jitted = jit(fun, static_argnums=static_argnums)

    @api_boundary
    @functools.wraps(fun)
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as axes:
            for name, size in axis_env or ():
                axes.enter_context(named_axis(Axis(size, name)))
            traced = jitted.trace(*args, **kwargs)
        jaxpr = traced.jaxpr if platform is None else traced.specialized(platform)
        return (jaxpr, traced.out_info) if return_shape else jaxpr

    return jaxpr_of


@overload
def eval_shape(fun: Callable[..., Never], *args: Any, **kwargs: Any) -> Any: ...
@overload
def eval_shape(fun: Callable[..., Array], *args: Any, **kwargs: Any) -> ShapeDtypeStruct: ...
@overload
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of the outputs of `fun`, as `ShapeDtypeStruct`s; nothing is computed. `fun` may return such types too.

    >>> xlamini.eval_shape(lambda x: x * 2, xlamini.ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    check_callable("eval_shape", fun)
    try:
        return jit(fun).trace(*args, **kwargs).out_info
    except OutputTypeError as error:
        if not isinstance(error.value, ShapeDtypeStruct):
            raise
    return jit(_with_arrays(fun)).eval_shape(*args, **kwargs)


def _check_platform(name: str | None) -> None:
    if name is not None and name not in PLATFORMS:
        raise ValueError(f"make_jaxpr: there is no platform {name!r}; there are {', '.join(PLATFORMS)}")


def _with_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an array in the place of each type that it returns."""

    @functools.wraps(fun)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        return tree_map(lambda x: full(x.aval, 0) if isinstance(x, ShapeDtypeStruct) else x, fun(*args, **kwargs))

    return of_arrays
