"""psend and precv, the two halves of a ppermute, and pcast, which marks a value as varying along an axis.

Under vmap all positions are in one program, so a message needs no channel: its token holds it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of, manual_axis, tree_map
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.primitives.collectives.axes import AxisName, axis_size, collective_axes, names_of
from xlamini.primitives.collectives.permute import ppermute
from xlamini.primitives.collectives.varying import reduce_p, unreduce_p, varying_along


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

    >>> forward = [(0, 1)]
    >>> def from_before(x):
    ...     return precv(psend(x, "i", forward), xlamini.ShapeDtypeStruct((), "float32"), "i", forward)
    >>> xlamini.vmap(from_before, axis_name="i")(jnp.array([1.0, 2.0]))
    Array([0., 1.], dtype=float32)
    """
    axis_size(collective_axes("precv", axis_name))
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
    """The leaves of `x`, whose types say from now on that they vary along the named axis, or are partial sums.

    Args:
      x: a pytree of arrays.
      axis_name: the axis, or several; NameError if there is no such axis.
      to: "varying", from a value that is equal on all devices: within shard_map the derivative with respect to it is
        then that of one device alone, instead of the sum over the axis. "unreduced", from a varying one: the devices'
        values are the terms of a sum, which psum or psum_scatter takes. "reduced", from one that is equal on all
        devices: its cotangent is unreduced. ValueError for any other cast, and for the last two without `check_vma`.

    Nothing is computed. Under vmap any value may vary, so that "varying" returns the arrays unchanged.

    >>> xlamini.vmap(lambda x: pcast(1.0, "i", to="varying") + x, axis_name="i")(xlamini.numpy.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: to must be 'varying', 'reduced' or 'unreduced', got {to!r}")
    names = names_of("pcast", axis_name)
    axis_size(names)
    axes = frozenset(name for name in names if manual_axis(name) is not None)
    if to != "varying":
        _check_tracked(to, names)
        return tree_map(lambda leaf: _as_sums(leaf, names, to), x)
    return tree_map(lambda leaf: _varying(leaf, axes), x) if axes else x


def _check_tracked(to: str, names: Sequence[Any]) -> None:
    for name in names:
        axis = manual_axis(name)
        if axis is None or not axis.checked:
            raise ValueError(
                f"pcast: to={to!r} is for axes along which types say how values vary, but {name!r} is "
                + ("an axis of vmap" if axis is None else "one of a shard_map with check_vma=False")
            )


_SOURCES = {"unreduced": "varying", "reduced": "invarying"}


def _as_sums(x: Any, names: Sequence[Any], to: str) -> Any:
    for name in names:
        if (source := _state(x, name)) != _SOURCES[to]:
            raise _no_cast(x, name, source, to)
    return (unreduce_p if to == "unreduced" else reduce_p).cast(x, tuple(names))


def _varying(x: Any, axes: frozenset[Any]) -> Any:
    for name in sorted(sums_of(aval_of(x)).unreduced & axes, key=str):
        raise _no_cast(x, name, "unreduced", "varying")
    return varying_along(x, axes)


def _state(x: Any, name: Any) -> str:
    aval, sums = aval_of(x), sums_of(aval_of(x))
    if name in sums.unreduced:
        return "unreduced"
    return "varying" if name in aval.vma else "reduced" if name in sums.reduced else "invarying"


def _no_cast(x: Any, name: Any, source: str, to: str) -> ValueError:
    return ValueError(
        f"pcast: {aval_of(x).str_long()} is {source} along {name!r}, which cannot be cast to {to!r}; varying becomes "
        "unreduced, invarying becomes reduced or varying, reduced becomes varying, and psum takes an unreduced sum"
    )
