"""The language of tests/transforms/test_programs.py twice: by xlamini, and by NumPy with Python loops and dual numbers.

Values are numbers and vectors of SIZE numbers. `Plain` knows nothing of tracing: derivatives are carried along with
each number, reverse mode is one forward pass for each element, vmap is a loop.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xlamini
from xlamini import lax
from xlamini.primitives.shape.shape import broadcast, sum_over

SIZE = 3
Function = Callable[..., Any]


class Xlamini:
    """Each operation by xlamini."""

    sin, cos, tanh = lax.sin, lax.cos, lax.tanh
    jit, grad, vmap = xlamini.jit, xlamini.grad, xlamini.vmap

    @staticmethod
    def total(v: Any) -> Any:
        return sum_over(v, (0,))

    @staticmethod
    def spread(s: Any) -> Any:
        return broadcast(s, (SIZE,))

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return lax.select_n(condition, y, x)

    @staticmethod
    def jvp(fun: Function) -> Function:
        return lambda x, t: sum(xlamini.jvp(fun, (x,), (t,)))

    @staticmethod
    def linearize(fun: Function) -> Function:
        def linearized(x: Any, t: Any) -> Any:
            out, push = xlamini.linearize(fun, x)
            return out + push(t)

        return linearized

    @staticmethod
    def vjp(fun: Function) -> Function:
        return lambda x, ct: xlamini.vjp(fun, x)[1](ct)[0]

    @staticmethod
    def value_and_grad(fun: Function) -> Function:
        def both(x: Any) -> Any:
            value, gradient = xlamini.value_and_grad(fun)(x)
            return value * gradient

        return both


class Dual:
    """A value and its derivative along one direction, told from other directions by its tag."""

    __array_ufunc__ = None

    def __init__(self, tag: int, value: Any, slope: Any):
        self.tag, self.value, self.slope = tag, value, slope

    def __add__(self, other: Any) -> Any:
        return _linear(np.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return _linear(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _linear(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        tag, (x, dx), (y, dy) = _parted(self, other)
        return Dual(tag, x * y, x * dy + dx * y)

    def __getitem__(self, i: Any) -> Any:
        return Dual(self.tag, self.value[i], self.slope[i])

    def __gt__(self, other: Any) -> Any:
        return self.value > other

    __radd__, __rmul__ = __add__, __mul__


def _parted(x: Any, y: Any) -> tuple[int, tuple[Any, Any], tuple[Any, Any]]:
    """The innermost tag of two values, and each as value and slope along it."""
    tag = max(v.tag for v in (x, y) if isinstance(v, Dual))
    return tag, *((v.value, v.slope) if isinstance(v, Dual) and v.tag == tag else (v, 0.0 * v) for v in (x, y))


def _linear(operation: Function, x: Any, y: Any) -> Any:
    if not isinstance(x, Dual) and not isinstance(y, Dual):
        return operation(x, y)
    tag, (x, dx), (y, dy) = _parted(x, y)
    return Dual(tag, _linear(operation, x, y), _linear(operation, dx, dy))


def _smooth(function: Function, derivative: Function) -> Function:
    def applied(x: Any) -> Any:
        if not isinstance(x, Dual):
            return function(x)
        return Dual(x.tag, applied(x.value), derivative(x.value) * x.slope)

    return applied


def _everywhere(function: Function, *values: Any) -> Any:
    """A linear function of NumPy arrays, on duals."""
    tags = [v.tag for v in values if isinstance(v, Dual)]
    if not tags:
        return function(*values)
    tag = max(tags)
    pairs = [(v.value, v.slope) if isinstance(v, Dual) and v.tag == tag else (v, 0.0 * v) for v in values]
    return Dual(tag, *(_everywhere(function, *side) for side in zip(*pairs, strict=True)))


def _number(x: Any) -> Any:
    while isinstance(x, Dual):
        x = x.value
    return x


_tags = itertools.count()


class Plain:
    """Each operation by NumPy, loops and dual numbers."""

    sin = staticmethod(_smooth(np.sin, lambda x: Plain.cos(x)))
    cos = staticmethod(_smooth(np.cos, lambda x: -1.0 * Plain.sin(x)))
    tanh = staticmethod(_smooth(np.tanh, lambda x: 1.0 - Plain.tanh(x) * Plain.tanh(x)))

    @staticmethod
    def total(v: Any) -> Any:
        return _everywhere(np.sum, v)

    @staticmethod
    def spread(s: Any) -> Any:
        return _everywhere(lambda x: np.full(SIZE, x), s)

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return x if _number(condition) else y

    @staticmethod
    def jit(fun: Function) -> Function:
        return fun

    @staticmethod
    def vmap(fun: Function) -> Function:
        return lambda v: stacked([fun(v[i]) for i in range(SIZE)])

    @staticmethod
    def jvp(fun: Function) -> Function:
        return lambda x, t: sum(pushed(fun, x, t))

    linearize = jvp

    @staticmethod
    def vjp(fun: Function) -> Function:
        def pulled(x: Any, ct: Any) -> Any:
            basis = np.eye(SIZE) if np.ndim(_number(x)) else [1.0]
            slopes = [ct * pushed(fun, x, e)[1] for e in basis]
            each = [Plain.total(s) if np.ndim(_number(s)) else s for s in slopes]
            return stacked(each) if np.ndim(_number(x)) else each[0]

        return pulled

    @staticmethod
    def grad(fun: Function) -> Function:
        return lambda x: Plain.vjp(fun)(x, 1.0)

    @staticmethod
    def value_and_grad(fun: Function) -> Function:
        return lambda x: fun(x) * Plain.grad(fun)(x)


def stacked(numbers: Sequence[Any]) -> Any:
    return _everywhere(lambda *xs: np.stack(xs), *numbers)


def pushed(fun: Function, x: Any, t: Any) -> tuple[Any, Any]:
    """The value of `fun` at `x` and its derivative along `t`."""
    tag = next(_tags)
    out = fun(Dual(tag, x, t))
    return (out.value, out.slope) if isinstance(out, Dual) and out.tag == tag else (out, 0.0 * out)
