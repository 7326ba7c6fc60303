"""`jax._src.api_util`: the parameters that a call names."""

import inspect
from collections.abc import Iterable

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)

Numbers = int | Iterable[int] | None
Names = str | Iterable[str] | None


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Numbers, argnames: Names
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of the same parameters, where only one of the two is given."""
    numbers = (argnums,) if isinstance(argnums, int) else None if argnums is None else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else None if argnames is None else tuple(argnames)
    named = [p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None for p in sig.parameters.values()]
    if numbers is None:
        numbers = tuple(i for i, name in enumerate(named) if name in (names or ()))
    if names is None:
        names = tuple(name for i in numbers if -len(named) <= i < len(named) and (name := named[i]))
    return numbers, names
