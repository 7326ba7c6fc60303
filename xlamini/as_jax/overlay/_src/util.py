"""`jax._src.util`: helpers for lists, which interpreters of programs import."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.wrapping import wraps as wraps

__getattr__ = fall_through(__name__)

prod = math.prod


def safe_map(f: Callable[..., Any], *lists: Iterable[Any]) -> list[Any]:
    """`map` as a list; ValueError for lists of different lengths."""
    return [f(*each) for each in zip(*lists, strict=True)]


def safe_zip(*lists: Iterable[Any]) -> list[tuple[Any, ...]]:
    """`zip` as a list; ValueError for lists of different lengths."""
    return list(zip(*lists, strict=True))


def foreach(f: Callable[..., Any], *lists: Iterable[Any]) -> None:
    """Call `f` for the elements of lists of one length."""
    safe_map(f, *lists)


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The firsts and the seconds."""
    rows = list(pairs)
    return tuple(a for a, _ in rows), tuple(b for _, b in rows)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The firsts, the seconds and the thirds."""
    rows = list(triples)
    return tuple(a for a, _, _ in rows), tuple(b for _, b, _ in rows), tuple(c for _, _, c in rows)


def split_list(args: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Lists of these sizes, and the rest."""
    rest, parts = list(args), []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]


def split_list_checked(args: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Lists of these sizes, whose sum is the length; ValueError otherwise."""
    if sum(sizes) != len(args):
        raise ValueError(f"the sizes {list(sizes)} are {sum(sizes)} together, but there are {len(args)} elements")
    return split_list(args, sizes)[:-1]


def partition_list(mask: Sequence[bool], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The items where the mask is False, and those where it is True."""
    pairs = safe_zip(mask, items)
    return [x for chosen, x in pairs if not chosen], [x for chosen, x in pairs if chosen]


def merge_lists(mask: Sequence[bool], where_false: Sequence[Any], where_true: Sequence[Any]) -> list[Any]:
    """The list of which `partition_list` made these two."""
    left, right = iter(where_false), iter(where_true)
    return [next(right if chosen else left) for chosen in mask]


def subs_list(places: Sequence[int | None], source: Sequence[Any], base: Sequence[Any]) -> list[Any]:
    """`base` with the elements of `source` at these places, where a place is not None."""
    return [x if place is None else source[place] for place, x in zip(places, base, strict=True)]


def concatenate(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """The elements of all lists."""
    return [x for each in lists for x in each]


flatten = concatenate


def unflatten(items: Iterable[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Lists of these sizes."""
    rest = iter(items)
    return [[next(rest) for _ in range(size)] for size in sizes]


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """`curry(f)(x)(y)` is `f(x, y)`."""
    return functools.partial(functools.partial, f)


def tuple_insert(t: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with one element more."""
    return (*t[:index], value, *t[index:])


def tuple_delete(t: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    """The tuple with one element less."""
    return t[:index] + t[index + 1 :]


def tuple_update(t: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with another element."""
    return (*t[:index], value, *t[index + 1 :])


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """The axis from the front; ValueError if there is none."""
    if not -num_dims <= axis < num_dims:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {num_dims}")
    return int(axis) % num_dims


def ceil_of_ratio(x: int, y: int) -> int:
    """The quotient, rounded up."""
    return -(-x // y)


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a function with a transformation around it."""
    return f"{transform_name}({name})"


def fun_name(f: Callable[..., Any], default_name: str = "<unnamed function>") -> str:
    """The name of a function, or of the one in a `functools.partial`."""
    return getattr(f, "__name__", None) or (fun_name(f.func) if isinstance(f, functools.partial) else default_name)


def set_module(module: str) -> Callable[[Any], Any]:
    """A decorator that lets a function or class say that it is of a module."""

    def decorate(thing: Any) -> Any:
        thing.__module__ = module
        return thing

    return decorate


class HashableFunction:
    """A function that is another's equal if both have one code and equal values in their closures."""

    def __init__(self, f: Callable[..., Any], closure: Hashable):
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return type(other) is HashableFunction and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"

    def _key(self) -> Hashable:
        return self.f.__code__, self.closure


def as_hashable_function(closure: Hashable) -> Callable[[Callable[..., Any]], HashableFunction]:
    """A decorator that makes a HashableFunction."""
    return lambda f: HashableFunction(f, closure)


class OrderedSet(dict[Any, None]):
    """A set that keeps the order in which elements were added."""

    def __init__(self, iterable: Iterable[Any] = ()):
        super().__init__(dict.fromkeys(iterable))

    def add(self, x: Any) -> None:
        self[x] = None

    def remove(self, x: Any) -> None:
        del self[x]

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()


def stable_unique(iterable: Iterable[Any]) -> Iterable[Any]:
    """The elements without repetitions, in their order."""
    return dict.fromkeys(iterable).keys()
