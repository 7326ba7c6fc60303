"""make_jaxpr and eval_shape: tracing without running."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from xlamini.core import Axis, Values, flatten, named_axis, tree_map
from xlamini.core.api_boundary import api_boundary
from xlamini.primitives.tangent_ops import full
from xlamini.staging.run.jit_function import jit
from xlamini.staging.trace.arguments import OutputTypeError, check_callable, has_refs, name_of
from xlamini.staging.trace.ref_arguments import OpenedRefs, pure
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.static_args import Numbers


def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Numbers = (), axis_env: Any = None, return_shape: bool = False
) -> Callable[..., Any]:
    """A function that traces `fun` for its arguments and returns the jaxpr, closed over captured arrays.

    Arguments are arrays, numbers, or `ShapeDtypeStruct`s; nothing is computed. With `return_shape` it returns a pair,
    the jaxpr and the types of the outputs. `axis_env` is a list of pairs (name, size), the axes that collectives may
    refer to. Of a ref among the arguments the jaxpr takes the value, and returns the final one after the outputs.

    >>> print(xlamini.make_jaxpr(lambda x: x * x)(2.0))
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    check_callable("make_jaxpr", fun)
    jit(fun, static_argnums=static_argnums)  # for its checks

    @api_boundary
    @functools.wraps(fun)
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as axes:
            for name, size in axis_env or ():
                axes.enter_context(named_axis(Axis(size, name)))
            jaxpr, out_info = _traced(fun, static_argnums, args, kwargs)
        return (jaxpr, out_info) if return_shape else jaxpr

    return jaxpr_of


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of the outputs of `fun`, as `ShapeDtypeStruct`s; nothing is computed. `fun` may return such types too.

    >>> xlamini.eval_shape(lambda x: x * 2, xlamini.ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    check_callable("eval_shape", fun)
    try:
        return _traced(fun, (), args, kwargs)[1]
    except OutputTypeError as error:
        if not isinstance(error.value, ShapeDtypeStruct):
            raise
    return _traced(_with_arrays(fun), (), args, kwargs)[1]


def _traced(fun: Callable[..., Any], static: Numbers, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The jaxpr, of the pure form of `fun` if there are refs among the arguments, and the types of its outputs."""
    if not has_refs(flatten((args, kwargs))[0]):
        traced = jit(fun, static_argnums=static).trace(*args, **kwargs)
        return traced.jaxpr, traced.out_info
    refs = OpenedRefs(name_of(fun), (tuple(args), kwargs))
    args, kwargs = refs.tree
    with refs.passed():
        traced = jit(pure(fun), static_argnums=static).trace(*args, **kwargs)
    return traced.jaxpr, traced.out_info[0]


def _with_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an array in the place of each type that it returns."""

    @functools.wraps(fun)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        return tree_map(lambda x: full(x.aval, 0) if isinstance(x, ShapeDtypeStruct) else x, fun(*args, **kwargs))

    return of_arrays
