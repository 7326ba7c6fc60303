"""`jnp.ufunc`: elementwise functions that also reduce, accumulate, update and combine every pair.

`jnp.add` and thirteen others are of this class, and what `frompyfunc` makes. Each method is a left fold in NumPy's
order, one loop in the program; a function for which there is something quicker, such as a sum, names it in `Shortcuts`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import aval_of, trim
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.tracing.state import state
from xlamini.numpy.arguments import as_index, as_operand, as_operand_beside, refuse_out
from xlamini.numpy.vectorize import vectorize
from xlamini.primitives import expand_dims, in_dtype, stands_for_array
from xlamini.runtime import Array
from xlamini.staging import jit
from xlamini.staging.run.eager.composite import beyond_dtypes
from xlamini.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from xlamini.numpy.folds import Folded


class Shortcuts(NamedTuple):
    """Faster equivalents: `reduce(a, axis, dtype, out, keepdims, initial, where)`, `accumulate(a, axis, dtype)`, and
    the updating method of `x.at[index]`.
    """

    reduce: Callable[..., Any] | None = None
    accumulate: Callable[..., Any] | None = None
    update: str | None = None


_NONE = Shortcuts()


class ufunc:
    """An elementwise function of `nin` operands with `nout` results. `identity` is its neutral element, or None.

    >>> xlamini.numpy.add.reduce(xlamini.numpy.arange(4)), xlamini.numpy.add(1, 2)
    (Array(6, dtype=int32), Array(3, dtype=int32, weak_type=True))
    """

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        identity: Any = None,
        shortcuts: Shortcuts = _NONE,
    ):
        self.__name__: str = getattr(func, "__name__", type(func).__name__)
        self.__qualname__, self.__doc__, self.__wrapped__ = self.__name__, func.__doc__, func
        self._function: Any = func
        self._nin, self._nout, self._identity, self._shortcuts = nin, nout, identity, shortcuts

    @functools.cached_property
    def _compiled(self) -> Any:
        return jit(self._function)

    @property
    def nin(self) -> int:
        """The number of operands."""
        return self._nin

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._nout

    @property
    def nargs(self) -> int:
        """The number of operands and results."""
        return self._nin + self._nout

    @property
    def identity(self) -> Any:
        """The neutral element of the function; None if there is no such number."""
        return self._identity

    @property
    def _folded(self) -> Folded:
        return _folds().Folded(self.__name__, self._function, self._identity)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __hash__(self) -> int:
        return hash((self._function, self._identity, self._nin, self._nout))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._parts() == other._parts()

    def _parts(self) -> tuple[Any, ...]:
        return self._function, self._identity, self._nin, self._nout

    def __call__(self, *operands: Any, **named: Any) -> Array:
        """The function of each element; of pairs of elements, broadcast."""
        try:  # in place of `api_boundary`, which would cost a call more
            if named:
                named = self._without_outputs(**named)
            if state.builder is None and not (int in map(type, operands) and beyond_dtypes(operands)):
                return self._compiled(*operands, **named)
            return self._function(*operands, **named)
        except Exception as error:
            if not any(map(stands_for_array, operands)):
                trim(error)
                raise
        return self(*(x.__jax_array__() if stands_for_array(x) else x for x in operands))

    def _without_outputs(self, out: None = None, where: None = None, **named: Any) -> dict[str, Any]:
        refuse_out(self.__name__, out)
        if where is not None:
            raise NotImplementedError(f"{self.__name__}: `where` must be None; choose among results with jnp.where")
        return named

    @api_boundary
    def reduce(
        self,
        a: ArrayLike,
        axis: Any = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Combine all elements along an axis, from the first to the last; with axis None, of all axes.

        It begins with `initial`, if given, and leaves out elements where `where` does not hold. ValueError if there
        is nothing to begin with: no element, or a `where`, and neither identity nor `initial`.

        >>> xlamini.numpy.subtract.reduce(xlamini.numpy.array([9, 2, 3]))
        Array(4, dtype=int32)
        """
        self._check_binary("reduce")
        refuse_out(f"{self.__name__}.reduce", out)
        if self._shortcuts.reduce is not None:
            return self._shortcuts.reduce(a, axis, dtype, None, keepdims, initial, where)
        return _folds().reduced(self._folded, a, axis, dtype, keepdims, initial, where)

    @api_boundary
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The cumulative results of `reduce` up to each element along an axis.

        >>> xlamini.numpy.multiply.accumulate(xlamini.numpy.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
        """
        self._check_binary("accumulate")
        refuse_out(f"{self.__name__}.accumulate", out)
        if axis is None:
            raise ValueError(f"{self.__name__}.accumulate: axis must be an integer, not None; flatten with .ravel()")
        if self._shortcuts.accumulate is not None:
            return self._shortcuts.accumulate(a, axis, dtype)
        return _folds().accumulated(self._folded, a, axis, dtype)

    @api_boundary
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """A copy of `a` with its elements at `indices` combined with those of `b`; once for each time one is named.

        Arrays are immutable, so `inplace` must be given as False, else NotImplementedError.

        >>> xlamini.numpy.add.at(xlamini.numpy.zeros(3), xlamini.numpy.array([0, 0]), 1.0, inplace=False)
        Array([2., 0., 0.], dtype=float32)
        """
        name = f"{self.__name__}.at"
        if inplace:
            raise NotImplementedError(f"{name}: arrays are immutable; pass inplace=False and use what is returned")
        x: Any = as_operand(name, a)
        if self._nin - 1 != (b is not None):
            raise TypeError(f"{name}: the function takes {self._nin} operands, so `b` must be given if that is 2")
        at = x.at[indices]
        if b is None:
            return at.set(in_dtype(self(x[indices]), aval_of(x).dtype))
        if self._shortcuts.update is not None:
            return getattr(at, self._shortcuts.update)(as_operand_beside(name, b, x))
        return _folds().updated(self._folded, x, indices, in_dtype(as_operand_beside(name, b, x), aval_of(x).dtype))

    @api_boundary
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of each element of A with each of B; the axes of A come first.

        >>> xlamini.numpy.add.outer(xlamini.numpy.arange(2), xlamini.numpy.arange(2))
        Array([[0, 1],
               [1, 2]], dtype=int32)
        """
        self._check_binary("outer")
        x, y = as_operand(f"{self.__name__}.outer", A), as_operand(f"{self.__name__}.outer", B)
        rank = aval_of(x).ndim
        return self(expand_dims(x, range(rank, rank + aval_of(y).ndim)), expand_dims(y, range(rank)))

    @api_boundary
    def reduceat(
        self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """`reduce` of each part of an axis that runs from one index up to the next; of one element, where that is not
        greater.

        >>> xlamini.numpy.add.reduceat(xlamini.numpy.arange(5), xlamini.numpy.array([0, 3]))
        Array([3, 7], dtype=int32)
        """
        self._check_binary("reduceat")
        refuse_out(f"{self.__name__}.reduceat", out)
        return _folds().reduced_parts(self._folded, a, indices, axis, dtype)

    def _check_binary(self, method: str) -> None:
        if (self._nin, self._nout) != (2, 1):
            raise ValueError(
                f"{self.__name__}.{method}: only functions of two operands with one result have it, and this one takes "
                f"{self._nin} and gives {self._nout}"
            )


def _folds() -> Any:
    """The loops. They take long to import, and few programs fold."""
    from xlamini.numpy import folds

    return folds


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc of a function of scalars, which is mapped over arrays as `vectorize` does.

    >>> frompyfunc(lambda x, y: x * y + 1, 2, 1).reduce(xlamini.numpy.array([1, 2, 3]))
    Array(10, dtype=int32)
    """
    if not callable(func):
        raise TypeError(f"frompyfunc: func must be a function, got {func!r} of type {type(func).__name__}")
    return _made(func, as_index("frompyfunc", "nin", nin), as_index("frompyfunc", "nout", nout), identity)


def _made(func: Any, nin: int, nout: int, identity: Any) -> ufunc:
    return ufunc(vectorize(func), nin, nout, identity=identity)
