"""The options of `jit`: what the user asked for besides the function, and which arguments are dynamic for it."""
from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import flatten_from_user
from xlamini.staging.trace.static_args import Selected


class Inline(enum.Enum):
    """Where the body of a nested `jit` takes the place of its call: the values of its argument `inline`.

    `JAX_EARLY`, like True, while the caller is traced. With the others the call is an equation, of which the compiler
    decides (`outline`, docs/outlining.md).

    >>> f = xlamini.jit(lambda x: x + 1, inline=Inline.JAX_EARLY)
    >>> [eqn.primitive.name for eqn in xlamini.make_jaxpr(f)(1).eqns]
    ['add']
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


class Options(NamedTuple):
    """The keyword arguments of `jit`, checked."""

    static: Selected
    donate: Selected
    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    compiler: Any = None
    outline: bool | None = None
    in_shardings: Any = None
    out_shardings: Any = None
    max_compiles: int | None = None

    def key(self) -> Hashable:
        """A hashable key, equal for equal options."""
        selected = [(s.nums, s.names) for s in (self.static, self.donate)]
        compiler = None if self.compiler is None else tuple(self.compiler.items())
        trees = map(flatten_from_user, (self.in_shardings, self.out_shardings))
        shardings = [(tuple(leaves), tree) for leaves, tree in trees]
        others = self.keep_unused, self.inline, self.device, self.outline, self.max_compiles
        return (*selected, *others, compiler, *shardings)

    def dynamic(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments of a call that are not static."""
        positional = [x for position, x in enumerate(args) if position not in self.static.nums]
        return [*positional, *(x for name, x in kwargs.items() if name not in self.static.names)]

    def shifted(self) -> Options:
        """The options for a function with one more argument in front."""
        return self._replace(static=self.static.shifted(), donate=self.donate.shifted())
