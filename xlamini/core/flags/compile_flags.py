"""The flags that change what XLA makes of a program, and the options of its compiler that they set.

Options given to `jit` or `compile` come before those of the flags.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from xlamini.core.caching.memo import memoised
from xlamini.core.flags.config import DISPATCH, Flag


class CompilerEffortLevel(enum.Enum):
    """How far XLA goes, for short run times or little memory; the values are XLA's numbers.

    The flags `optimization_level` and `memory_fitting_level` and the compiler options of these names take the names.

    >>> CompilerEffortLevel("O2")
    <CompilerEffortLevel.O2: 29>
    >>> program = xlamini.jit(lambda x: x + 1, compiler_options={"optimization_level": CompilerEffortLevel.O1.name})
    >>> program(1)
    Array(2, dtype=int32, weak_type=True)
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: object) -> CompilerEffortLevel | None:
        return cls.__members__.get(value) if isinstance(value, str) else None


LEVELS = {level.name: level.value for level in CompilerEffortLevel}

outlining: Final = Flag(
    "outlining", True, "on the CPU, compile a block that a program repeats once, as a function", affects=DISPATCH
)
optimization_level: Final = Flag(
    "optimization_level", "UNKNOWN", "how far XLA optimizes run time", affects=DISPATCH, choices=tuple(LEVELS)
)
memory_fitting_level: Final = Flag(
    "memory_fitting_level", "O2", "how far XLA goes to fit a program into memory", affects=DISPATCH,
    choices=tuple(LEVELS),
)  # fmt: skip
exec_time_optimization_effort: Final = Flag(
    "exec_time_optimization_effort", 0.0, "XLA's effort for a short run time, from -1 to 1", affects=DISPATCH
)
memory_fitting_effort: Final = Flag(
    "memory_fitting_effort", 0.0, "XLA's effort to use little memory, from -1 to 1", affects=DISPATCH
)
disable_most_optimizations: Final = Flag(
    "disable_most_optimizations", False, "compile fast, to programs that run slower", affects=DISPATCH
)
compiler_enable_remat_pass: Final = Flag(
    "compiler_enable_remat_pass", True, "let XLA recompute values where memory is short", affects=DISPATCH
)

_BY_NAME = (optimization_level, memory_fitting_level, exec_time_optimization_effort, memory_fitting_effort)
_FLAGS = (outlining, *_BY_NAME, disable_most_optimizations, compiler_enable_remat_pass)
_FAST_COMPILATION = {
    "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True, "xla_test_all_input_layouts": False
}  # fmt: skip
_NO_REMAT = {"xla_disable_hlo_passes": "rematerialization"}

compile_key: Callable[[], tuple] = functools.partial(
    operator.attrgetter(*(f"{flag.name}.value" for flag in _FLAGS)), SimpleNamespace(**{f.name: f for f in _FLAGS})
)
"""This thread's values of these flags, part of the key of every compiled program; one call into C."""


compile_names: Final = tuple(flag.name for flag in _FLAGS)
"""The names of these flags."""


@memoised("helper: compiler options by flags", 64)
def options_of(key: tuple[Any, ...]) -> dict[str, Any]:
    """XLA's options by name for the flags of a `compile_key()`; a flag at its default adds none."""
    values = dict(zip(_FLAGS, key, strict=True))
    options = {flag.name: values[flag] for flag in _BY_NAME if values[flag] != flag.default}
    if values[disable_most_optimizations]:
        options |= _FAST_COMPILATION
    return options if values[compiler_enable_remat_pass] else options | _NO_REMAT
