"""psend and precv, the two halves of a ppermute, and pcast, which marks a value as varying along an axis.

Under vmap all positions are in one program, so a message needs no channel: its token holds it.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError, aval_of, manual_axis, tree_map
from xlamini.primitives.collectives.axes import AxisName, axis_size, names_of
from xlamini.primitives.collectives.permute import ppermute
from xlamini.primitives.collectives.varying import varying_along


def psend(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Send each leaf of `x` along the named axis, as `ppermute` does; the token that `precv` takes.

    Raises NameError if there is no such axis, ValueError for a source or destination that is named twice or is none.

    >>> swap = [(0, 1), (1, 0)]
    >>> def swapped(x):
    ...     return precv(psend(x, "i", swap), xlamini.ShapeDtypeStruct((), "int32"), "i", swap)
    >>> xlamini.vmap(swapped, axis_name="i")(xlamini.numpy.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    return ppermute(x, axis_name, perm)


def precv(token: Any, out_shape: Any, axis_name: AxisName, perm: Any) -> Any:
    """Receive the message of the `psend` that made the token, with the same `perm`.

    `out_shape` has the shape and dtype of each leaf; ShapeError where another arrives. NameError if there is no such
    axis.
    """
    axis_size(names_of("precv", axis_name))
    return tree_map(_received, out_shape, token)


def _received(expected: Any, x: Any) -> Any:
    aval = aval_of(x)
    if (tuple(expected.shape), expected.dtype) != (aval.shape, aval.dtype):
        raise ShapeError(
            f"precv: out_shape says {expected.dtype}{list(expected.shape)}, but {aval.str_short(short_dtypes=False)} "
            "arrives; give the token of the matching psend"
        )
    return x


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """The leaves of `x`, from now on taken to vary along the named axis, with `to="varying"`.

    Within shard_map the derivative with respect to them is then that of one device alone, instead of the sum over the
    axis. Under vmap any value may vary, so the arrays are returned unchanged. NameError if there is no such axis.

    >>> xlamini.vmap(lambda x: pcast(1.0, "i", to="varying") + x, axis_name="i")(xlamini.numpy.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: to must be 'varying', 'reduced' or 'unreduced', got {to!r}")
    names = names_of("pcast", axis_name)
    axis_size(names)
    if to != "varying":
        raise NotImplementedError(f"pcast: to={to!r} is not supported, as no type says it of values; pass 'varying'")
    axes = frozenset(name for name in names if manual_axis(name) is not None)
    return tree_map(lambda leaf: varying_along(leaf, axes), x) if axes else x
