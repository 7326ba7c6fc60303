"""Flags: a global value, a thread's own value inside a `with`, a start value from the environment.

A flag is one of jaxlib's cells, so reading `flag.value` is one C++ call, and the C++ dispatch path
can see it. What a flag changes decides which cache keys it is part of: TRACE (what a traced program
means), DISPATCH (how a call is run) or PROCESS (neither). The environment variable `XLAMINI_<NAME>`,
else JAX's `JAX_<NAME>`, gives a flag its first value.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final

from jaxlib._jax import config as _cells, jax_jit

from xlamini.core import jaxlib_types
from xlamini.core.flags.environment_variables import JAX_PREFIX, PREFIX, near, warn_of_value

_REQUIRED: Any = object()
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"", "0", "false", "f", "no", "n", "off"})
_NUMBERS: dict[type, Callable[[str], Any]] = {int: int, float: float}
_IN_WORDS = {bool: "1, true, yes or on, or 0, false, no or off", int: "an integer", float: "a number"}

TRACE, DISPATCH, PROCESS = "trace", "dispatch", "process"

trace_context_key: Callable[[], tuple[Any, ...]] = _cells.trace_context
"""This thread's values of all TRACE flags, as one hashable tuple."""

trace_context_names: Callable[[], tuple[str, ...]] = _cells.trace_context_names
"""The names of these values."""

flags: dict[str, Flag] = {}
"""Every flag by its name, without the `jax_` that `config.update` also takes."""

ALIASES = {"platform_name": "platforms", "xla_backend": "platforms"}
"""Flags of JAX that have another name here."""


class _EnteredContexts(threading.local):
    """The values of a flag's contexts that a thread has entered, each in a list of its own, after the value outside."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []


class Flag(jaxlib_types.Config):
    """One flag. `flag.value` reads it; `with flag(new_value):` changes it for this thread."""

    affects: str
    choices: tuple[str, ...]
    help: str
    optional: bool

    def __init__(
        self,
        name: str,
        default: Any,
        help: str,
        *,
        affects: str = PROCESS,
        choices: tuple[str, ...] = (),
        type: type | None = None,
        optional: bool = False,
    ):
        self.help, self.choices, self.optional, self.affects = help, choices, optional, affects
        self.type: type | Any = type if type is not None else default.__class__
        self._open = _EnteredContexts()
        self.default: Any = default
        super().__init__(
            name,
            self._from_environment(name, default),
            include_in_jit_key=affects != PROCESS,
            include_in_trace_context=affects == TRACE,
        )
        flags[name] = self

    def __call__(self, new_val: Any = _REQUIRED) -> AbstractContextManager[None]:
        """A context manager, or a decorator, that gives the flag another value in this thread."""
        if new_val is _REQUIRED:
            if self.type is not bool:
                raise TypeError(f"{self.name}() takes the value that the flag shall have")
            new_val = True
        return self._override(self.checked(new_val))

    @contextmanager
    def _override(self, value: Any) -> Generator[None]:
        # The contexts of asyncio's tasks may end in another order than they began: each ends its own, not the last.
        open_here, entry = self._open.entries, [value]
        before = self.swap_local(value)
        if not open_here:
            open_here.append([before])  # the value outside all contexts
        open_here.append(entry)
        try:
            yield
        finally:
            interleaved = open_here[-1] is not entry
            open_here[:] = [other for other in open_here if other is not entry]
            self.set_local(open_here[-1][0])
            if len(open_here) == 1:
                open_here.clear()
            if interleaved:
                self._warn_of_tasks()

    def _warn_of_tasks(self) -> None:
        warnings.warn(
            f"a context of flag {self.name} ended while one that began later is open, as contexts of asyncio tasks do. "
            "C++ dispatch reads flags by thread, so that each of the tasks had the value that was set last: await "
            "nothing inside, or call a function that enters the context with asyncio.to_thread",
            UserWarning,
            stacklevel=4,
        )

    def checked(self, value: Any) -> Any:
        """The value itself if the flag can have it."""
        if value is None and self.optional:
            return None
        if self.type is float and type(value) is int:
            value = float(value)
        if not isinstance(value, self.type) or (self.type is int and value.__class__ is bool):
            raise TypeError(
                f"flag {self.name} takes {self._accepts()}, but was given "
                f"{value!r} of type {value.__class__.__name__}"
            )
        if self.choices and value not in self.choices:
            raise ValueError(
                f"flag {self.name} takes {self._accepts()}, but was given {value!r}"
                f"{near(value, self.choices)}"
            )
        return value

    def _accepts(self) -> str:
        values = " or ".join(map(repr, self.choices)) or f"a value of type {self.type.__name__}"
        return f"{values} or None" if self.optional else values

    def _from_environment(self, name: str, default: Any) -> Any:
        names = [name, *(alias for alias, flag in ALIASES.items() if flag == name)]
        variables = [f"{prefix}{word.upper()}" for prefix in (PREFIX, JAX_PREFIX) for word in names]
        variable = next((v for v in variables if v in os.environ), None)
        if variable is None:
            return default
        text = os.environ[variable]
        try:
            return self.parse(text)
        except ValueError:
            accepted = _IN_WORDS.get(self.type) or " or ".join(self.choices) + near(text, self.choices)
            warn_of_value(variable, text, accepted, default)
            return default

    def set_default(self, default: Any) -> None:
        """Give the flag another default, and its value too unless the environment has one."""
        self.default = default
        self.set_global(self._from_environment(self.name, default))

    def parse(self, text: str) -> Any:
        """The value of a text from the environment or the command line; ValueError if there is none."""
        if self.type is bool:
            if text.lower() not in _TRUE | _FALSE:
                raise ValueError
            return text.lower() in _TRUE
        if self.choices and text not in self.choices:
            raise ValueError
        return _NUMBERS.get(self.type, str)(text)

    def __repr__(self) -> str:
        return f"<flag {self.name} = {self.value!r}: {self.help}>"


class Config:
    """All flags by name, with or without `jax_` in front: read as attributes, set with `update`.

    >>> config.update("jax_enable_x64", True)
    >>> config.enable_x64
    True
    >>> config.update("jax_enable_x64", False)
    """

    def update(self, name: str, val: Any) -> None:
        """Set a flag for the whole process.

        AttributeError for a name that is no flag, TypeError or ValueError for a wrong value.
        """
        flag = _find(name)
        flag.set_global(flag.checked(val))

    def parse_flags_with_absl(self) -> None:
        """Set flags from the command line: `--jax_enable_x64`, `--jax_platforms=cpu`; other arguments are left alone.

        JAX's name; absl is not needed. ValueError for a text that the flag cannot have.
        """
        for argument in sys.argv[1:]:
            name, _, text = argument.partition("=")
            if name.startswith("--jax_"):
                flag = _find(name[2:])
                flag.set_global(flag.checked(flag.parse(text or "true")))

    config_with_absl = parse_flags_with_absl

    def read(self, name: str) -> Any:
        """The flag's value in this thread."""
        return _find(name).value

    @property
    def values(self) -> dict[str, Any]:
        """Every flag's value in this thread."""
        return {name: flag.value for name, flag in flags.items()}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are on in this thread: the flag `enable_x64`, as JAX's older programs read it."""
        return _find("enable_x64").value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _find(name).value

    def __repr__(self) -> str:
        """The flags that differ from their defaults: `Config(enable_x64=True)`."""
        return f"Config({', '.join(f'{n}={f.value!r}' for n, f in flags.items() if f.value != f.default)})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"write config.update({name!r}, {value!r}) to set a flag")


def _find(name: str) -> Flag:
    if not isinstance(name, str):
        raise TypeError(f"the name of a flag is a text, but was given {name!r} of type {type(name).__name__}")
    word = name.removeprefix("jax_")
    flag = flags.get(ALIASES.get(word, word))
    if flag is None:
        raise AttributeError(f"there is no flag {name!r}{near(word, flags)}")
    return flag


config: Final = Config()

enable_x64: Final = Flag(
    "enable_x64", False, "keep 64-bit dtypes instead of narrowing them", affects=TRACE
)


class _DisableJit(Flag):
    """The flag whose argument JAX calls `disable`."""

    def __call__(self, disable: bool = True) -> AbstractContextManager[None]:  # type: ignore[override]
        """A context manager, or a decorator, in which jitted functions run op by op in Python."""
        return super().__call__(disable)


disable_jit: Final = _DisableJit("disable_jit", False, "run jitted functions op by op in Python", affects=TRACE)
numpy_dtype_promotion: Final = Flag(
    "numpy_dtype_promotion",
    "standard",
    "'strict' allows promotion only between Python scalars and arrays",
    affects=TRACE,
    choices=("standard", "strict"),
)
numpy_rank_promotion: Final = Flag(
    "numpy_rank_promotion",
    "allow",
    "what to do when arrays of different rank are broadcast together",
    affects=TRACE,
    choices=("allow", "warn", "raise"),
)
_PRECISIONS = (
    "default high highest bfloat16 tensorfloat32 float32 ANY_F8_ANY_F8_F32 "
    "ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 "
    "F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 "
    "TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 F64_F64_F64"
)
default_matmul_precision: Final = Flag(
    "default_matmul_precision",
    None,
    "the precision of products and convolutions that name none",
    affects=TRACE,
    type=str,
    optional=True,
    choices=tuple(_PRECISIONS.split()),
)
default_prng_impl: Final = Flag(
    "default_prng_impl",
    "threefry2x32",
    "the generator of random.key and random.PRNGKey",
    affects=TRACE,
    choices=("threefry2x32", "rbg", "unsafe_rbg"),
)
legacy_prng_key: Final = Flag(
    "legacy_prng_key",
    "allow",
    "what to do when random numbers are drawn with raw keys, of random.PRNGKey",
    choices=("allow", "warn", "error"),
)


class _DeviceFlag(Flag):
    """A flag that takes a device or a platform's name."""

    def checked(self, value: Any) -> Any:
        if not (value is None or isinstance(value, str) or hasattr(value, "device_kind")):
            raise TypeError(
                f"{self.name} must be a device, of xlamini.devices(), or a platform's name such as 'cpu', got "
                f"{value!r} of type {type(value).__name__}"
            )
        return value


default_device: Final = _DeviceFlag(
    "default_device", None, "where arrays are made and run", affects=DISPATCH, type=object, optional=True
)
traceback_filtering: Final = Flag(
    "traceback_filtering",
    "auto",
    "leave xlamini's own frames out of tracebacks; all but 'off' mean the same",
    type=str,
    choices=("auto", "off", "remove_frames", "quiet_remove_frames", "tracebackhide"),
)
enable_checks: Final = Flag("enable_checks", False, "check the output of every rewrite")
debug_custom_rules: Final = Flag(
    "debug_custom_rules",
    False,
    "compare the rules of custom_jvp and custom_vjp with finite differences when they are first used",
    affects=TRACE,
)
strict_sharding: Final = Flag(
    "strict_sharding",
    False,
    "where types along explicit mesh axes leave open how a result is split, raise an error in place of a warning",
    affects=TRACE,
)
print_start: Final = Flag("print_start", True, "process 0 prints a line when processes have come together")


def trace_flags() -> dict[str, Any]:
    """This thread's values of all TRACE flags, by name."""
    return {name: flag.value for name, flag in flags.items() if flag.affects == TRACE}


@contextmanager
def under(values: dict[str, Any]) -> Generator[None]:
    """Give flags these values in this thread, to do later what was begun under them."""
    with ExitStack() as stack:
        for name, value in values.items():
            if flags[name].value != value:
                stack.enter_context(flags[name](value))
        yield


tracing: Final = jaxlib_types.Config("tracing", False, include_in_jit_key=True, include_in_trace_context=False)
"""True in a thread while a builder is active, so that compiled calls are staged and not run."""

callback_depth: Final = jaxlib_types.Config(
    "callback_depth", 0, include_in_jit_key=True, include_in_trace_context=False
)
"""How many calls from programs into Python a thread is in. Dispatch tells the calls of one depth from those of another,
so that a callback may call the function it is part of, even while that is compiled."""

forked: Final = jaxlib_types.Config("forked", False, include_in_jit_key=True, include_in_trace_context=False)
"""True in a process that was forked after XLA's threads had started. There no signature is known to dispatch."""

devices_busy: Final = jaxlib_types.Config(
    "devices_busy", False, include_in_jit_key=True, include_in_trace_context=False
)
"""True in a call into Python for which the devices of a program on several wait. Dispatch tells it from other calls."""

recorder: Final = jaxlib_types.Config("recorder", None, include_in_jit_key=False, include_in_trace_context=True)
"""What a thread that inspects a program tells of each rewrite and trace, else None. As a part of all keys of traces and
rewrites it makes them anew."""


def _show_to_dispatch() -> None:
    """Tell the C++ dispatch path which cells decide on 64-bit arguments and on running op by op."""
    jax_jit.set_enable_x64_state(enable_x64)
    jax_jit.set_disable_jit_state(disable_jit)


_show_to_dispatch()
