"""`jax.extend.linear_util`: functions with transformations around them, each a generator.

The generator takes the arguments, yields those of the function inside with its keyword arguments, is sent the results,
and yields its own.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from xlamini.as_jax.missing_names import fall_through

__getattr__: Final = fall_through(__name__)


class StoreException(Exception):
    """What a transformation returns beside its results is read before the function has run."""


class Store:
    """What a transformation returns beside its results."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("the function has not run yet; call it first")
        return self._values[-1]

    def store(self, value: Any) -> None:
        self._values.append(value)


class WrappedFun:
    """The function `f` and the transformations around it, the outermost first."""

    call_wrapped: Any
    debug_info: Any
    f: Callable[..., Any]
    params: dict[str, Any]
    transforms: tuple[Any, ...]

    def __init__(
        self, f: Callable[..., Any], transforms: tuple[Any, ...], params: dict[str, Any], call: Any, debug_info: Any
    ):
        self.f, self.transforms, self.params = f, transforms, params
        self.call_wrapped, self.debug_info = call, debug_info
        self.__name__: Any | str = getattr(f, "__name__", "<unnamed function>")

    def wrap(self, transform: Any, static: tuple[Any, ...], call: Callable[..., Any]) -> WrappedFun:
        return WrappedFun(self.f, ((transform, static), *self.transforms), self.params, call, self.debug_info)

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, tuple(self.params.items())

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """The function with no transformations around it yet; `params` are keyword arguments of it."""
    given = params or {}
    return WrappedFun(f, (), given, functools.partial(f, **given), debug_info)


def _generated(gen: Any, static: tuple[Any, ...], call: Any, store: Store | None, *args: Any, **kwargs: Any) -> Any:
    steps = gen(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    out = steps.send(call(*inner_args, **inner_kwargs))
    if store is None:
        return out
    results, beside = out
    store.store(beside)
    return results


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """`call(fun, *args)` that runs once for equal functions and arguments; what lies beside results stays with them."""
    known: dict[Any, Any] = {}

    def remembered(*args: Any) -> Any:
        if args not in known:
            known[args] = call(*args)
        return known[args]

    return remembered


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """What lies beside the results of the one of two functions that has run, and whether it was the first."""
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            return is_first, aux()
        except StoreException:
            pass
    raise StoreException("neither function has run yet; call one first")


def transformation(gen: Any) -> Callable[..., WrappedFun]:
    """Decorator of a generator: `gen(fun, *static)` is the function with the transformation around it."""

    @functools.wraps(gen)
    def around(fun: WrappedFun, *static: Any) -> WrappedFun:
        return fun.wrap(gen, static, functools.partial(_generated, gen, static, fun.call_wrapped, None))

    return around


def transformation_with_aux(gen: Any) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation whose last yield is (results, something beside), and a function that returns the latter."""

    @functools.wraps(gen)
    def around(fun: WrappedFun, *static: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        call = functools.partial(_generated, gen, static, fun.call_wrapped, store)
        return fun.wrap(gen, static, call), lambda: store.val

    return around


def transformation2(gen: Any) -> Callable[..., WrappedFun]:
    """A transformation written as a function `gen(f, *static, *args, **kwargs)`."""

    @functools.wraps(gen)
    def around(fun: WrappedFun, *static: Any) -> WrappedFun:
        return fun.wrap(gen, static, functools.partial(gen, fun.call_wrapped, *static))

    return around


def transformation_with_aux2(gen: Any) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation written as a function `gen(f, store, *static, *args, **kwargs)`."""

    @functools.wraps(gen)
    def around(fun: WrappedFun, *static: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        call = functools.partial(gen, fun.call_wrapped, store, *static)
        return fun.wrap(gen, static, call), lambda: store.val

    return around
