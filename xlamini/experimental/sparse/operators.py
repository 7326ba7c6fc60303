"""Python's operators on sparse arrays: what `sparsify` makes of the operators of arrays, as one program each."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

from xlamini import numpy as jnp
from xlamini.core import api_boundary_methods
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.experimental.sparse import rules as rules
from xlamini.experimental.sparse.array import JAXSparse
from xlamini.experimental.sparse.transform import sparsify
from xlamini.primitives import is_operand
from xlamini.staging import composite
from xlamini.typing import DTypeLike


def _binary(fun: Callable[[Any, Any], Any], is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    run = composite()(sparsify(fun))

    def method(self: Any, other: Any) -> Any:
        if not (is_operand(other) or isinstance(other, JAXSparse)):
            return NotImplemented
        return run(other, self) if is_reflected else run(self, other)

    return method


def _unary(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return composite()(sparsify(fun))


def _comparison(name: str) -> Callable[[Any, Any], NoReturn]:
    def method(self: Any, other: Any) -> NoReturn:
        raise NotImplementedError(
            f"sparse: the comparison {name} has a dense result; compare dense arrays, from todense()"
        )

    return method


def _with_static(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a sparse array and a static argument."""

    def run(x: Any, static: Any) -> Any:
        return sparsify(lambda x: fun(x, static))(x)

    run.__name__ = fun.__name__
    return composite(static=("static",))(run)


_power, _sum, _transpose, _reshape = map(_with_static, (operator.pow, jnp.sum, jnp.transpose, jnp.reshape))
_astype = _with_static(jnp.astype)


def _getitem(self: Any, index: Any) -> Any:
    return sparsify(lambda x: x[index])(self)


class SparseOperators(JAXSparse):
    """Operators, with the semantics of `sparsify`: a result is sparse where the zeros are preserved."""

    __add__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.add)
    __radd__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.add, True)
    __sub__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.sub)
    __rsub__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.sub, True)
    __mul__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.mul)
    __rmul__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.mul, True)
    __truediv__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.truediv)
    __rtruediv__: ClassVar[Callable[[Any, Any], Any]] = _binary(operator.truediv, True)
    __matmul__: ClassVar[Callable[[Any, Any], Any]] = _binary(jnp.matmul)
    __rmatmul__: ClassVar[Callable[[Any, Any], Any]] = _binary(jnp.matmul, True)
    __neg__: ClassVar[Callable[[Any], Any]] = _unary(operator.neg)
    __abs__: ClassVar[Callable[[Any], Any]] = _unary(operator.abs)
    __eq__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison("==")
    __ne__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison("!=")
    __lt__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison("<")
    __le__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison("<=")
    __gt__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison(">")
    __ge__: ClassVar[Callable[[Any, Any], NoReturn]] = _comparison(">=")
    __hash__: Any = None
    __getitem__ = _getitem

    def __pos__(self) -> Any:
        return self

    def __pow__(self, exponent: Any) -> Any:
        return _power(self, exponent) if isinstance(exponent, int) else NotImplemented

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def sum(self, axes: int | Sequence[int] | None = None) -> Any:
        """The sum over some dimensions, by default over all: a sparse array, or a dense scalar."""
        return _sum(self, axes)

    def astype(self, dtype: DTypeLike) -> Any:
        """The array with elements of this dtype."""
        return _astype(self, dtype)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions permuted, by default reversed."""
        return _transpose(self, axes)

    def reshape(self, *shape: Any) -> Any:
        """The array in another shape of the same size, in which one size may be -1."""
        return _reshape(self, shape[0] if len(shape) == 1 else shape)

    @property
    @api_boundary
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return _transpose(self, None)


api_boundary_methods(SparseOperators)
