"""The public function `scan`: a loop with a static trip count, a carry, stacked inputs (xs) and outputs (ys)."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from xlamini.core import (
    Avals,
    Values,
    aval_of,
    disable_jit,
    flatten,
    flatten_from_user,
    tree_map,
    treedef_children,
    unflatten,
)
from xlamini.core.pytree import structure
from xlamini.core.sizes.expression import max_size
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.wrapping import wraps
from xlamini.primitives import index_in_dim, reshape
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.runtime import Array, device_put_value
from xlamini.staging import (
    ArgNames,
    Cells,
    Trace,
    chosen,
    has_refs,
    inverse,
    merged,
    name_of,
    rebuilt,
    retry_with_refs,
    store,
    threaded,
    values_of,
)
from xlamini.staging.trace.ref_arguments import OpenedRefs, closed
from xlamini.staging.trace.trace_cache import body_trace
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.control_flow.carries import Carry, LeafNames, check_function
from xlamini.transforms.scan.primitive import scan_p
from xlamini.transforms.scan.rules import parts
from xlamini.transforms.scan.slices import slices_of, unsharded
from xlamini.transforms.sharding.device_put import device_put

C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[C, Y]],
    init: complex,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]: ...
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """The last carry of `carry, y = f(carry, x)` for every slice x of `xs`, from `carry = init`; and all y, stacked.

    `xs` is an array or a container of arrays; x has its structure, with slices along dimension 0. All arrays in it are
    of one length there; with `xs=None`, x is None, and `length` is the trip count (else ValueError). `f` returns the
    carry in the structure, shapes and dtypes of `init` (else TypeError), and y, an array or a container of arrays; each
    is stacked along a new dimension 0. A Python number in `init` takes the dtype that `f` returns for it.

    `reverse` starts from the last slice. `unroll` is the number of iterations in one iteration of the compiled loop
    (0 or True: all, without a loop). `_split_transpose` is accepted for compatibility and ignored.

    Reverse mode stores the residuals of every iteration; loop-invariant residuals are stored once.

    >>> total, sums = scan(lambda total, x: (total + x, total + x), 0, xlamini.numpy.arange(5))
    >>> total, sums
    (Array(10, dtype=int32), Array([ 0,  1,  3,  6, 10], dtype=int32))
    """
    check_function("scan", "f", f)
    if not isinstance(reverse, bool | np.bool_ | int):
        raise TypeError(f"scan: reverse must be True or False, got {reverse!r} of type {type(reverse).__name__}")
    return looped(LoopCall("scan", f, bool(reverse), unroll), init, xs, length)


class LoopCall(NamedTuple):
    """The body function of a loop and its options; `what` is the API name, for error messages."""

    what: str
    f: Callable[[Any, Any], Any]
    reverse: bool = False
    unroll: Any = 1


def looped(loop: LoopCall, init: Any, xs: Any, length: Any = None) -> tuple[Any, Any]:
    """The last carry and the stacked results; refs that the function writes are threaded through the carry.

    A ref in `xs` is sliced like an array: each iteration has a ref of its slice.
    """
    if not has_refs(flatten(xs)[0]):
        return retry_with_refs(_run, _threading, loop, init, xs, length)
    refs = OpenedRefs(f"{name_of(loop.f)} for {loop.what}", xs)

    @wraps(loop.f)
    def body(carry: Any, x: Any) -> Any:
        x, cells = closed(x)
        new, y = _pair(loop, loop.f(carry, x))
        return new, (y, [cell.read() for cell in cells])

    with refs.passed():
        last, (ys, values) = retry_with_refs(_run, _threading, loop._replace(f=body), init, refs.tree, length)
    refs.store(values)
    return last, ys


def _threading(cells: Cells, loop: LoopCall, init: Any, xs: Any, length: Any) -> tuple[Any, Any]:
    pure = threaded(loop.f, cells)

    def body(carry: Any, x: Any) -> Any:
        out, values = pure(carry[0], carry[1], x)
        new, y = _pair(loop, out)
        return (values, new), y

    body.__name__ = name_of(loop.f)
    (values, last), ys = _run(loop._replace(f=body), (values_of(cells), init), xs, length)
    store(cells, values)
    return last, ys


def _run(loop: LoopCall, init: Any, xs: Any, length: Any) -> tuple[Any, Any]:
    leaves, xs_tree = flatten_from_user(xs)
    leaves = unsharded(loop.what, leaves, LeafNames("xs", xs_tree))
    slices, length = slices_of(loop.what, leaves, LeafNames("xs", xs_tree), length)
    unroll = _unroll_factor(loop, length)
    if disable_jit.value and length:
        return _in_python(loop, init, [unflatten(xs_tree, row) for row in _rows(leaves, length)])
    carry = Carry(loop.what, loop.f, init, "init")
    in_tree = structure(((init, xs), {}))
    names = ArgNames(loop.f, in_tree)

    def paired(carry: Any, x: Any) -> Any:
        return _pair(loop, loop.f(carry, x))

    def trace_for(avals: Avals) -> Trace:
        inputs = [*avals, *slices]
        anew = functools.partial(
            trace, paired, in_tree, inputs, None, names, name_of(loop.f), reuse_equal=True, kind=BodyBuilder
        )
        return body_trace("scan", loop.f, in_tree, inputs, anew)

    start, traced, _ = carry.trace_body(trace_for, lambda tree: treedef_children(tree)[0])
    last, ys = _bind(traced, start, leaves, length=length, reverse=loop.reverse, unroll=unroll)
    return rebuilt(carry.tree, last), rebuilt(treedef_children(traced.out_tree)[1], ys)


def _bind(traced: Trace, init: Values, xs: Values, **params: Any) -> tuple[list[Any], list[Any]]:
    """Bind `scan_p` for a traced body, after two simplifications that save loop state.

    A carry that the body returns unchanged becomes a constant; an output that is a slice of an input is that input.
    """
    body, count = traced.jaxpr, len(init)
    inputs, outs = parts(body.invars, len(traced.captured), count), body.outvars
    fixed = [after is before for after, before in zip(outs[:count], inputs.carry, strict=True)]
    passed = [inputs.xs.index(v) if v in inputs.xs else None for v in outs[count:]]
    own = [place is None for place in passed]
    consts = [*inputs.consts, *chosen(inputs.carry, fixed)]
    invars = [*consts, *chosen(inputs.carry, inverse(fixed)), *inputs.xs]
    outvars = [*chosen(outs[:count], inverse(fixed)), *chosen(outs[count:], own)]
    results = scan_p.bind(
        *traced.captured,
        *chosen(init, fixed),
        *chosen(init, inverse(fixed)),
        *xs,
        jaxpr=body if invars == body.invars and outvars == outs else body.replace(invars=invars, outvars=outvars),
        num_carry=count - sum(fixed),
        num_consts=len(consts),
        **params,
    )
    after, ys = results[: count - sum(fixed)], results[count - sum(fixed) :]
    forwarded = [_array(xs[place]) for place in passed if place is not None]
    return merged(fixed, map(_array, chosen(init, fixed)), after), merged(own, ys, forwarded)


def _array(x: Any) -> Any:
    """A forwarded operand as an array; the user may have passed a number or an ndarray."""
    return x if hasattr(x, "aval") else device_put_value(x, aval=aval_of(x))


def _pair(loop: LoopCall, out: Any) -> tuple[Any, Any]:
    if isinstance(out, tuple | list) and len(out) == 2:
        return out[0], out[1]
    shown = f"a {type(out).__name__} of {len(out)}" if isinstance(out, tuple | list) else _described(out)
    raise TypeError(
        f"{loop.what}: {name_of(loop.f)} must return a pair (carry, y), but returned {shown}; return (carry, None) if "
        "there is nothing to stack"
    )


def _described(out: Any) -> str:
    if hasattr(out, "aval"):
        return f"one array, {out.aval.str_short(short_dtypes=False)}"
    return f"a {type(out).__name__}" if out is not None else "None"


def _unroll_factor(loop: LoopCall, length: int) -> int:
    """The unroll factor; 0 unrolls the whole loop."""
    unroll = loop.unroll
    if isinstance(unroll, bool):
        return max_size(length, 1) if unroll else 1
    if not isinstance(unroll, int | np.integer):
        raise TypeError(
            f"{loop.what}: unroll must be an int or a bool, got {unroll!r} of type {type(unroll).__name__}; it decides "
            "how the loop is compiled"
        )
    if unroll < 0:
        raise ValueError(f"{loop.what}: unroll must be 0 or more, got {unroll}; 1 means not unrolled, 0 fully unrolled")
    return int(unroll)


def _rows(leaves: Values, length: int) -> list[list[Any]]:
    return [[index_in_dim(x, i, keepdims=False) for x in leaves] for i in range(length)]


def _in_python(loop: LoopCall, init: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
    carry, ys = device_put(init), []
    for x in reversed(rows) if loop.reverse else rows:
        carry, y = _pair(loop, loop.f(carry, x))
        ys.append(y)
    return carry, tree_map(_stack, *(reversed(ys) if loop.reverse else ys))


def _stack(*slices: Any) -> Any:
    return concatenate([reshape(x, (1, *aval_of(x).shape)) for x in slices], 0)
