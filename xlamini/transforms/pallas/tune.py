"""`tune`: candidates for a kernel, such as sizes of blocks, ranked by a model of their time, or by the time itself."""
from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import flatten, unflatten
from xlamini.core.errors import JaxRuntimeError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.runtime.devices.platforms import local_devices
from xlamini.runtime.targets.topology import Target
from xlamini.staging import jit
from xlamini.staging.aot.kernel_queries import read_kernels
from xlamini.staging.aot.kernels import KernelTable, cells_of, shown_seconds, table
from xlamini.staging.aot.stages import Compiled
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct

_FAILURES = (TypeError, ValueError, NotImplementedError, JaxRuntimeError)
_RUNS = 10
_LONGEST = 300
"""Characters of a reason: what compilers say may have pages."""
_MODELLED, _MEASURED = "modelled", "measured"


class Trial(NamedTuple):
    """What became of a candidate.

    >>> Trial((8, 128), 1e-6, "modelled", KernelTable(), "").candidate
    (8, 128)
    """

    candidate: Any
    seconds: float | None
    """The time of its kernels; None if it does not compile, or if nothing is known of them."""
    source: str
    """Where the time is from: "modelled" or "measured"."""
    kernels: KernelTable
    """The rows of `Compiled.kernels`; none if the time was measured."""
    error: str
    """Why it does not compile; empty if it does."""


class Tuning(list[Trial]):
    """The candidates, the best first; its text is a table.

    >>> Tuning([Trial(8, 1e-6, "modelled", KernelTable(), "")]).best
    8
    """

    @property
    def best(self) -> Any:
        """The candidate of the shortest time; ValueError if none compiles."""
        if not self or self[0].error:
            why = f": {self[0].error}" if self else ""
            raise ValueError(f"tune: no candidate compiles{why}")
        return self[0].candidate

    def __str__(self) -> str:
        works = [trial for trial in self if not trial.error]
        cells = [_cells(trial) for trial in works]
        columns = list(dict.fromkeys(name for each in cells for name in each))
        rows = table([columns, *([each.get(name, "") for name in columns] for each in cells)]) if works else []
        failed = [f"  {trial.candidate}: {trial.error}" for trial in self if trial.error]
        return "\n".join([f"{len(works)} of {len(self)} candidates, the best first", *rows, *failed])


@api_boundary
def tune(
    kernel_of: Callable[..., Callable[..., Any]], candidates: Sequence[Any], *args: Any, target: Target | None = None
) -> Tuning:
    """Rank candidates for a kernel, such as sizes of blocks, the best first.

    Args:
      kernel_of: takes a candidate, or its items by name if it is a dict, and returns a function of `args`: what
        `pallas_call` returns, or one that calls it.
      candidates: what to choose from.
      args: arrays or `ShapeDtypeStruct`s.
      target: what to compile for, from `xlamini.target`. By default kernels run on the TPU or GPU that is here, and
        their times are measured.

    For a target the times are those of a model. On a TPU it counts bundles and copies of blocks, which ranks sizes of
    blocks well. On a GPU it is a bound from peaks, memory and the programs that run at once: it finds blocks that spill
    or are too small, and says little of two that are near. Operations around the kernels are not in it.

    A candidate that does not compile is listed last, with the reason. Raises ValueError without a target where neither
    a TPU nor a GPU is.

    >>> def double_rows(rows):
    ...     block = BlockSpec((rows, 128), lambda i: (i, 0))
    ...     def body(x, o):
    ...         o[...] = 2 * x[...]
    ...     shape = ShapeDtypeStruct((1024, 128), "float32")
    ...     return pallas_call(body, shape, grid=1024 // rows, in_specs=[block], out_specs=block)
    >>> x, v5e = ShapeDtypeStruct((1024, 128), "float32"), xlamini.target("tpu:v5e:2x2")  # doctest: +SKIP
    >>> tune(double_rows, [8, 64, 512], x, target=v5e).best  # doctest: +SKIP
    512
    """
    if target is None:
        _check_device()
        return _ranked([_measured(kernel_of, each, args) for each in candidates])
    return _ranked(_modelled([(each, _compiled(kernel_of, each, args, target)) for each in candidates]))


def _check_device() -> None:
    if local_devices()[0].platform == "cpu":
        raise ValueError("tune: neither a TPU nor a GPU is here; name one: target=xlamini.target('gpu:h200')")


def _ranked(trials: Sequence[Trial]) -> Tuning:
    return Tuning(sorted(trials, key=_rank))


def _rank(trial: Trial) -> tuple[bool, float, float]:
    """Of two with the same limit, such as the copies, that is better which has less of the rest."""
    if trial.seconds is None:
        return bool(trial.error), float("inf"), 0.0
    return False, trial.seconds, sum(sum(each.time.parts.values()) for each in trial.kernels if each.time)


def _function(kernel_of: Callable[..., Any], candidate: Any) -> Callable[..., Any]:
    return kernel_of(**candidate) if isinstance(candidate, Mapping) else kernel_of(candidate)


def _compiled(kernel_of: Callable[..., Any], candidate: Any, args: Sequence[Any], target: Target) -> Compiled | str:
    """The candidate compiled for a target, or why it does not compile."""
    try:
        return jit(_function(kernel_of, candidate)).trace(*args).lower(target=target).compile()
    except _FAILURES as error:
        return _reason(error)


def _reason(error: Exception) -> str:
    return textwrap.shorten(f"{type(error).__name__}: {error}", _LONGEST)


def _modelled(made: Sequence[tuple[Any, Compiled | str]]) -> list[Trial]:
    read_kernels([each for _, each in made if isinstance(each, Compiled)])
    return [_trial(candidate, each) for candidate, each in made]


def _trial(candidate: Any, made: Compiled | str) -> Trial:
    if isinstance(made, str):
        return Trial(candidate, None, _MODELLED, KernelTable(), made)
    kernels = made.kernels()
    times = [each.time.seconds for each in kernels if each.time]
    return Trial(candidate, sum(times) if times else None, _MODELLED, kernels, "")


def _measured(kernel_of: Callable[..., Any], candidate: Any, args: Sequence[Any]) -> Trial:
    """The shortest of several runs."""
    try:
        fun, given = jit(_function(kernel_of, candidate)), _arrays(args)
        _seconds(fun, given)
        return Trial(candidate, min(_seconds(fun, given) for _ in range(_RUNS)), _MEASURED, KernelTable(), "")
    except _FAILURES as error:
        return Trial(candidate, None, _MEASURED, KernelTable(), _reason(error))


def _seconds(fun: Callable[..., Any], args: Sequence[Any]) -> float:
    start = time.perf_counter()
    for x in flatten(fun(*args))[0]:
        x.block_until_ready()
    return time.perf_counter() - start


def _arrays(args: Sequence[Any]) -> Any:
    """The arguments, with zeros where only the type was given."""
    leaves, tree = flatten(tuple(args))
    return unflatten(tree, [np.zeros(x.shape, x.dtype) if isinstance(x, ShapeDtypeStruct) else x for x in leaves])


def _cells(trial: Trial) -> dict[str, str]:
    """The cells of a candidate's row, by the names of columns."""
    first = {"candidate": str(trial.candidate), trial.source: shown_seconds(trial.seconds) if trial.seconds else "?"}
    if len(trial.kernels) != 1:
        return first
    kernel = trial.kernels[0]
    return {**first, "limit": kernel.time.limit if kernel.time else "", **cells_of(kernel.code)}
