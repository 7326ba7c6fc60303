"""The flags debug_nans and debug_infs: where a result is bad, the program runs again as a checked program.

That program is compiled too, and takes the same inputs: donated ones are kept while a flag is on.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Jaxpr, Values, aval_of, is_differentiable, unflatten
from xlamini.core.errors.frames import is_own, user_frame
from xlamini.core.flags.jax_flags import debug_infs, debug_nans
from xlamini.core.program.effects import more_than_observing
from xlamini.interpreters.check import check
from xlamini.staging.compile.key_reuse import run_on_keys
from xlamini.staging.compile.program import BoundProgram
from xlamini.staging.run.diagnostics.failure_location import Place, place_of

_BAD = {"nan": np.isnan, "inf": np.isinf}


class BadValueError(FloatingPointError):
    """A result is NaN under flag `debug_nans`, or infinite under `debug_infs`; `place` says where that began.

    >>> try:
    ...     with xlamini.debug_nans(True):
    ...         xlamini.numpy.log(-1.0)
    ... except FloatingPointError as error:
    ...     error.place.primitive
    'log'
    """

    def __init__(self, message: str, place: Place | None = None):
        super().__init__(message)
        self.place = place


def searched_for() -> list[str]:
    """What the flags ask to look for."""
    return [name for name, flag in (("nan", debug_nans), ("inf", debug_infs)) if flag.value]


def check_results(jaxpr: Jaxpr, inputs: Values, outs: Values, names: Sequence[str], is_own: bool) -> None:
    """Raise BadValueError if a result is bad; `is_own` says that the program is one of the library's functions."""
    found = [name for name in searched_for() if any(_is_bad(name, x) for x in outs)]
    if found:
        with debug_nans(False), debug_infs(False):
            raise _explained(jaxpr, inputs, names, found[0], is_own)


def run_and_look(
    run: Callable[[Jaxpr, Values], list[Any]], jaxpr: Jaxpr, inputs: Values, names: Sequence[str]
) -> list[Any]:
    """The outputs of a program that may run operation by operation; its results are looked at, not theirs."""
    with debug_nans(False), debug_infs(False):
        outs = run(jaxpr, inputs)
    check_results(jaxpr, inputs, outs, names, False)
    return outs


def _is_bad(category: str, x: Any) -> bool:
    if not is_differentiable(aval_of(x)):
        return False
    return any(_BAD[category](part).any() for part in _parts(x))


def _parts(x: Any) -> Iterable[np.ndarray]:
    """The array in NumPy, in pieces that are on devices of this process."""
    shards = getattr(x, "addressable_shards", None)
    return [np.asarray(x)] if shards is None else [np.asarray(shard.data) for shard in shards]


def _explained(jaxpr: Jaxpr, inputs: Values, names: Sequence[str], category: str, is_own: bool) -> BadValueError:
    where = f"the results of {jaxpr.name}"
    if more_than_observing(jaxpr.effects):
        effects = ", ".join(map(repr, jaxpr.effects))
        return _error(category, where, f"It has effects ({effects}), so it is not run again to find the place.")
    place = _first(jaxpr, inputs, category, is_own)
    if place is not None:
        return _error(category, place.primitive, str(place), place)
    given = [names[i] for i, x in enumerate(inputs) if _is_bad(category, x)]
    said = f"The argument {given[0]!r} has it already." if given else "No operation made it: it is a constant."
    return _error(category, where, said)


def _error(category: str, where: str, said: str, place: Place | None = None) -> BadValueError:
    return BadValueError(f"invalid value ({category}) encountered in {where}\n{said}", place)


def _first(jaxpr: Jaxpr, inputs: Values, category: str, is_own: bool) -> Place | None:
    """Where the checked program fails first; None if no operation does."""
    from xlamini.staging.run.eager.program_cache import run  # which asks this module

    made = check(jaxpr, frozenset({category}))
    _, error = made.split_outputs(run(made.jaxpr, inputs))
    if not error.sites or not int(error.code):
        return None
    place = place_of(error.rebuilt(list(map(np.asarray, error.values))))
    return _here(place) if is_own else place


def _here(place: Place) -> Place:
    """The place with the line that is running, as that of the library's functions is where they were traced first."""
    frame = user_frame()
    if frame is None:
        return place
    code = frame.f_code
    found = {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_qualname, "variable": None}
    return dataclasses.replace(place, **found)


def debugged(fun: Callable[..., Any], jaxpr: Jaxpr, bound: BoundProgram, leaves: Values) -> Any:
    """The output of a run, whose keys and results are looked at under the flags that say so."""
    operands = [*bound.captured, *leaves]
    outs = run_on_keys(bound.program.name, jaxpr, operands, lambda: bound.outs(leaves))
    if debug_nans.value or debug_infs.value:
        names = [*(f"a captured array, {aval_of(x).str_short()}" for x in bound.captured), *bound.names]
        check_results(jaxpr, operands, outs, names, is_own(fun))
    return unflatten(bound.out_tree, outs)
