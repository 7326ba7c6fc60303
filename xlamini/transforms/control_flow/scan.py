"""scan: a loop with a known number of steps that carries a state along, takes slices and stacks results."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.config import disable_jit
from xlamini.core.pytree import flatten_from_user, structure, tree_map, treedef_children, unflatten
from xlamini.core.tracer import aval_of
from xlamini.primitives.concatenate import concatenate
from xlamini.primitives.shape import reshape
from xlamini.primitives.slice import index_in_dim
from xlamini.runtime.put import device_put_value
from xlamini.transforms.arguments import ArgNames, avals_of, check_values, name_of
from xlamini.transforms.cells import Cells, store, threaded, values_of, with_cells
from xlamini.transforms.control_flow.carries import Carry, LeafNames, check_function
from xlamini.transforms.control_flow.scan_primitive import scan_p
from xlamini.transforms.control_flow.scan_rules import parts
from xlamini.transforms.higher_order import chosen, inverse, merged
from xlamini.transforms.placing import device_put
from xlamini.transforms.tracing import Trace, rebuilt, trace


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
    of one length there; with `xs=None`, x is None, and `length` says how many steps there are (else ValueError). `f`
    returns the carry in the structure, shapes and dtypes of `init` (else TypeError), and y, an array or a container of
    arrays; each is stacked along a new dimension 0. A Python number in `init` takes on the dtype that `f` returns for
    it.

    `reverse` starts from the last slice. `unroll` is how many steps are written out in each turn of the compiled loop
    (0 or True: all). `_split_transpose` is accepted, and changes nothing.

    Derivatives in reverse mode keep for every step what it needs, without what is the same in all steps.

    >>> total, sums = scan(lambda total, x: (total + x, total + x), 0, xlamini.numpy.arange(5))
    >>> total, sums
    (Array(10, dtype=int32), Array([ 0,  1,  3,  6, 10], dtype=int32))
    """
    check_function("scan", "f", f)
    return with_cells(
        lambda cells: _threading(cells, f, init, xs, length, bool(reverse), unroll)
        if cells
        else _scan(f, init, xs, length, bool(reverse), unroll)
    )


def _threading(cells: Cells, f: Callable[..., Any], init: Any, *rest: Any) -> tuple[Any, Any]:
    """The scan with the refs that `f` writes as part of the carry."""
    pure = threaded(f, cells)

    def body(carry: Any, x: Any) -> Any:
        out, values = pure(carry[0], carry[1], x)
        new, y = _pair(out, f)
        return (values, new), y

    (values, last), ys = _scan(body, (values_of(cells), init), *rest)
    store(cells, values)
    return last, ys


def _scan(f: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool, unroll: Any) -> tuple[Any, Any]:
    leaves, xs_tree = flatten_from_user(xs)
    slices, length = _slices(leaves, LeafNames("xs", xs_tree), length)
    turns = _unrolled(unroll, length)
    if disable_jit.value and length:
        return _in_python(f, init, [unflatten(xs_tree, row) for row in _rows(leaves, length)], reverse)
    carry = Carry("scan", f, init, "init")
    in_tree = structure(((init, xs), {}))
    names = ArgNames(f, in_tree)

    def paired(carry: Any, x: Any) -> Any:
        return _pair(f(carry, x), f)

    def trace_for(avals: Sequence[ShapedArray]) -> Trace:
        return trace(paired, in_tree, [*avals, *slices], None, names, name_of(f))

    start, traced = carry.settled(trace_for, lambda tree: treedef_children(tree)[0])
    last, ys = _bind(traced, start, leaves, length=length, reverse=reverse, unroll=turns)
    return rebuilt(carry.tree, last), rebuilt(treedef_children(traced.out_tree)[1], ys)


def _bind(traced: Trace, init: Sequence[Any], xs: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    """The last carry and the stacked outputs. A carry that stays as it is becomes a constant, a passed slice no output."""
    body, count = traced.jaxpr, len(init)
    inputs, outs = parts(body.invars, len(traced.captured), count), body.outvars
    fixed = [after is before for after, before in zip(outs[:count], inputs.carry, strict=True)]
    passed = [inputs.xs.index(v) if v in inputs.xs else None for v in outs[count:]]
    own = [place is None for place in passed]
    consts = [*inputs.consts, *chosen(inputs.carry, fixed)]
    invars = [*consts, *chosen(inputs.carry, inverse(fixed)), *inputs.xs]
    outvars = [*chosen(outs[:count], inverse(fixed)), *chosen(outs[count:], own)]
    found = scan_p.bind(
        *traced.captured,
        *chosen(init, fixed),
        *chosen(init, inverse(fixed)),
        *xs,
        jaxpr=body if invars == body.invars and outvars == outs else body.replace(invars=invars, outvars=outvars),
        num_carry=count - sum(fixed),
        num_consts=len(consts),
        **params,
    )
    after, ys = found[: count - sum(fixed)], found[count - sum(fixed) :]
    given = [_array(xs[place]) for place in passed if place is not None]
    return merged(fixed, map(_array, chosen(init, fixed)), after), merged(own, ys, given)


def _array(x: Any) -> Any:
    """What is passed on, as an array where the user gave a number or an ndarray."""
    return x if hasattr(x, "aval") else device_put_value(x, aval=aval_of(x))


def _pair(out: Any, f: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(out, tuple | list):
        shown = f"{type(out).__name__} {out!r}" if not hasattr(out, "aval") else f"one array, {aval_of(out).str_short(short_dtypes=False)}"
    elif len(out) != 2:
        shown = f"a {type(out).__name__} of {len(out)}"
    else:
        return out[0], out[1]
    raise TypeError(
        f"scan: {name_of(f)} must return a pair (carry, y), but returned {shown}; return (carry, None) if there is "
        "nothing to stack"
    )


def _slices(leaves: Sequence[Any], names: Sequence[str], length: Any) -> tuple[list[ShapedArray], int]:
    """The types of the slices, and how many there are."""
    avals = avals_of(leaves, names, "scan")
    check_values(leaves, names, "scan")
    for name, aval in zip(names, avals, strict=True):
        if not aval.shape:
            raise ValueError(
                f"scan: {name} is a scalar, {aval.str_short(short_dtypes=False)}, of which there are no slices; close "
                "over what is the same in all steps, or repeat it with jnp.broadcast_to"
            )
    found = _length(length)
    for i, aval in enumerate(avals):
        if found is not None and aval.shape[0] != found:
            where = f"{names[0]} has length {found}" if length is None else f"length is {found}"
            raise ValueError(
                f"scan: all arrays in xs must be of one length along dimension 0, but {where} and {names[i]}, "
                f"{aval.str_short(short_dtypes=False)}, has {aval.shape[0]}; cut them to one length"
            )
        found = aval.shape[0]
    if found is None:
        raise ValueError("scan: how many steps? xs has no arrays and length is not given; pass xs or length=n")
    return [a.update(shape=a.shape[1:]) for a in avals], found


def _length(length: Any) -> int | None:
    if length is None:
        return None
    try:
        number = operator.index(length)
    except TypeError:
        raise TypeError(
            f"scan: length must be an int that is known when the loop is traced, got {length!r} of type "
            f"{type(length).__name__}; for a number of steps that is computed use fori_loop or while_loop"
        ) from None
    if number < 0:
        raise ValueError(f"scan: length must be 0 or more, got {number}")
    return number


def _unrolled(unroll: Any, length: int) -> int:
    """How many steps to write out; 0 means all."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        number = operator.index(unroll)
    except TypeError:
        raise TypeError(
            f"scan: unroll must be an int or a bool, got {unroll!r} of type {type(unroll).__name__}"
        ) from None
    if number < 0:
        raise ValueError(f"scan: unroll must be 0 or more, got {number}; 1 means not unrolled, 0 means completely")
    return number


def _rows(leaves: Sequence[Any], length: int) -> list[list[Any]]:
    return [[index_in_dim(x, i, keepdims=False) for x in leaves] for i in range(length)]


def _in_python(f: Callable[..., Any], init: Any, rows: Sequence[Any], reverse: bool) -> tuple[Any, Any]:
    carry, ys = device_put(init), []
    for x in reversed(rows) if reverse else rows:
        carry, y = _pair(f(carry, x), f)
        ys.append(y)
    return carry, tree_map(_stack, *(reversed(ys) if reverse else ys))


def _stack(*slices: Any) -> Any:
    return concatenate([reshape(x, (1, *aval_of(x).shape)) for x in slices], 0)
