"""A compiled program: flat inputs in, flat outputs out.

Inputs that no equation reads never reach the executable. In place of a random key it gets, and returns, the words that
the key consists of.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core.dtypes import float0
from xlamini.core.errors import DeletedArrayError
from xlamini.runtime.dispatch import FastPath, fast_path
from xlamini.runtime.executable import Executable
from xlamini.runtime.host_memory import check_fits_in_memory
from xlamini.runtime.keys import overlaid, overlay
from xlamini.runtime.lifetime import explain_failure, release
from xlamini.runtime.to_device import device_put_value
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.compile.lowered_program import LoweredProgram

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import Unloaded


class Program:
    """A compiled jaxpr. It drops the module it was compiled from, which takes more memory than all the rest.

    `check_others` runs once, before the first call: whether the other processes are about to run the same program.
    """

    def __init__(
        self,
        lowered: LoweredProgram,
        executable: Executable | Unloaded,
        check_others: Callable[[], None] | None = None,
    ):
        self.name, self.device, self.executable = lowered.name, lowered.device, executable
        self.kept, self.computed = lowered.kept, lowered.computed
        self._out_avals, self._returns_keys = lowered.out_avals, lowered.returns_keys
        self._bytes_made = lowered.bytes_made
        self._taken = [i for i, k in enumerate(lowered.kept) if k]
        self._has_run = False
        self._check_others = check_others

    def __call__(self, inputs: Sequence[Any], committed: bool = False, names: Sequence[str] = ()) -> list[Any]:
        """The outputs; `names` are those of the last inputs, the arguments, in messages."""
        if not self._has_run:
            check_fits_in_memory(self.executable, self.device.platform, self.name, self._bytes_made)
            self._has_run = True
            check, self._check_others = self._check_others, None
            if check is not None:
                check()
        given = [overlaid(inputs[i]) for i in self._taken]
        try:
            outs = self.executable.call(self.executable.place(given), committed)
        except (DeletedArrayError, *DISPATCH_ERRORS) as error:
            explained = explain_failure(error, self._named(inputs, names))
            if explained is None:
                raise
            raise explained from None
        release(given[i] for i in self.executable.donated)
        if not all(self.computed):
            outs = self._with_float0(outs)
        return list(map(overlay, outs, self._out_avals)) if self._returns_keys else outs

    def _with_float0(self, outs: Sequence[Any]) -> list[Any]:
        """All outputs: those of dtype float0 have no elements to compute."""
        given, pairs = iter(outs), zip(self.computed, self._out_avals, strict=True)
        return [next(given) if computed else np.zeros(aval.shape, float0) for computed, aval in pairs]

    def _named(self, inputs: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
        """Each input with what it is to the user."""
        captured = [f"the array that {self.name} captured"] * (len(inputs) - len(names))
        arguments = [f"the argument {name!r} of {self.name}" for name in names]
        return list(zip([*captured, *arguments], map(overlaid, inputs), strict=True))

    def fast_path(self, captured: Sequence[Any], out_tree: Any, committed: bool) -> FastPath | None:
        """What lets C++ run this program by itself; `out_tree` is the output's for C++ dispatch.

        None for a program that calls Python functions: their effects are waited for, and their failures explained; for
        one that has to wait for its turn; and for one with outputs of dtype float0, which are NumPy's.
        """
        if self.executable.calls_python or self.executable.in_turn or not all(self.computed):
            return None
        places = iter(self.executable.in_shardings)
        constants = [
            device_put_value(overlaid(x), next(places) if kept else None)
            for x, kept in zip(captured, self.kept, strict=False)
        ]
        return fast_path(self.executable, out_tree, kept=self.kept, const_args=constants, committed=committed)
