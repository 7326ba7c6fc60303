"""Static and donated arguments, which the user selects by position or by name."""
from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core import Values
from xlamini.core.caching.ambiguity import exact_key, is_ambiguous
from xlamini.core.program.avals import is_several
from xlamini.staging.trace.arguments import name_of

Numbers = int | Sequence[int] | None
Names = str | Iterable[str] | None


class Selected:
    """Arguments selected by position or name; each has both where the function's signature tells."""

    names: tuple[Any, ...]
    nums: tuple[int, ...]

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        argnums: Numbers,
        argnames: Names,
        api: str = "jit",
        *,
        completes: bool = True,
    ):
        given = _several(argnums, operator.index, f"{api}: {what}_argnums must be an int or a sequence of ints")
        names = _several(argnames, _name, f"{api}: {what}_argnames must be a name or a sequence of names")
        parameters = _parameters(fun) if given or names else None
        nums = [_checked(f"{api}: {what}", fun, n, parameters) for n in given]
        _check_names(f"{api}: {what}", fun, names, parameters)
        self.nums, self.names = tuple(sorted({*nums})), names
        if completes and parameters is not None:
            self._complete(parameters)

    def _complete(self, parameters: list[inspect.Parameter]) -> None:
        """Add the position of each name, and the name of each position."""
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        by_keyword = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
        named = {*self.names, *(positional[i] for i in self.nums if i < len(positional))}
        self.nums = tuple(sorted({*self.nums, *(positional.index(n) for n in self.names if n in positional)}))
        self.names = tuple(sorted(n for n in named if n in by_keyword or n not in positional))

    @classmethod
    def of_jit(cls, what: str, fun: Callable[..., Any], argnums: Numbers, argnames: Names) -> Selected:
        """The selection for `jit`, which takes positions and names as they are where both are given, as in JAX.

        Whoever gives both may have a function whose signature is that of another one, which it wraps.
        """
        return cls(what, fun, argnums, argnames, completes=argnums is None or argnames is None)

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)

    def shifted(self) -> Selected:
        """The selection for a function with one more argument in front."""
        found = copy.copy(self)
        found.nums = tuple(n + 1 if n >= 0 else n for n in self.nums)
        return found


def _several(given: Any, checked: Callable[[Any], Any], requirement: str) -> tuple:
    """One value, several, or None, as a tuple of what `checked` returns, which raises TypeError for a wrong one."""
    if given is None:
        return ()
    try:
        return tuple(map(checked, given if is_several(given) and not isinstance(given, str) else (given,)))
    except TypeError:
        raise TypeError(f"{requirement}, got {given!r}") from None


def _name(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def check_apart(fun: Callable[..., Any], static: Selected, donate: Selected) -> None:
    """ValueError for an argument that is both static and donated."""
    both = sorted({*static.names} & {*donate.names}) or sorted({*static.nums} & {*donate.nums})
    if both:
        raise ValueError(
            f"jit: argument {both[0]!r} of {name_of(fun)} is both static and donated, but only arrays have memory to "
            "give; leave it out of donate_argnums"
        )


def _parameters(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(inspect.unwrap(fun)).parameters.values())
    except (TypeError, ValueError):
        return None


def _checked(what: str, fun: Callable[..., Any], num: Any, parameters: list[inspect.Parameter] | None) -> int:
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return num
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if not -count <= num < count:
        raise ValueError(
            f"{what}_argnums has {num}, but {name_of(fun)} takes {count} positional arguments (0 to {count - 1})"
        )
    return num % count


def _check_names(
    what: str, fun: Callable[..., Any], names: Sequence[str], parameters: list[inspect.Parameter] | None
) -> None:
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters]
    for name in names:
        if name not in known:
            raise ValueError(
                f"{what}_argnames has {name!r}, but {name_of(fun)} has no such argument; it "
                f"takes {', '.join(known)}"
            )


class StaticArgs:
    """The static arguments of one call; their `key` is part of a signature."""

    __slots__ = ("by_name", "by_num")
    by_name: tuple[Any, ...]
    by_num: tuple[Any, ...]

    def __init__(self, by_num: tuple[Any, ...], by_name: tuple[Any, ...]):
        self.by_num, self.by_name = by_num, by_name

    def restored(self, args: Values, kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """All arguments of the call, given the dynamic ones."""
        full = list(args)
        for position, value in self.by_num:
            full.insert(position, value)
        return full, {**kwargs, **dict(self.by_name)}

    def positions_of_others(self, count: int) -> list[int]:
        """Where the dynamic ones, `count` by position, are in the call."""
        taken = {position for position, _ in self.by_num}
        return [i for i in range(count + len(taken)) if i not in taken]

    @property
    def key(self) -> tuple[Any, ...]:
        # Types too: 1, 1.0 and True are equal, but mean different programs.
        values = tuple((where, exact_key(v)) for where, v in (*self.by_num, *self.by_name))
        return values, tuple(type(v) for _, v in (*self.by_num, *self.by_name))

    @property
    def are_ambiguous(self) -> bool:
        """Whether C++ dispatch, which compares by equality, would take another call's values for these."""
        return any(is_ambiguous(v) for _, v in (*self.by_num, *self.by_name))


def take_out(selected: Selected, args: Values, kwargs: dict[str, Any]) -> tuple[StaticArgs, list[Any], dict[str, Any]]:
    """Split a call's arguments into static and dynamic ones."""
    nums = {n % len(args) if n < 0 else n for n in selected.nums} if selected.nums else ()
    by_num = tuple((i, args[i]) for i in sorted(nums) if i < len(args))
    by_name = tuple((n, kwargs[n]) for n in selected.names if n in kwargs)
    dynamic = [x for i, x in enumerate(args) if i not in nums]
    names = {n for n, _ in by_name}
    return StaticArgs(by_num, by_name), dynamic, {k: v for k, v in kwargs.items() if k not in names}


def check_hashable(fun: Callable[..., Any], statics: StaticArgs) -> None:
    """Raise a ValueError for a static argument that cannot be part of a key."""
    for where, value in (*statics.by_num, *statics.by_name):
        _check_hashable(fun, where, value)


def _check_hashable(fun: Callable[..., Any], where: Any, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        parameters = _parameters(fun)
        name = parameters[where].name if parameters and isinstance(where, int) and where < len(parameters) else where
        raise ValueError(
            f"static argument {name!r} of {name_of(fun)} is of type {type(value).__name__}, which cannot be hashed; "
            "pass a tuple or another immutable value, or make the argument dynamic"
        ) from None
