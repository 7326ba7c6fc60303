"""The types of what `jit` returns: of all that can be called, traced and lowered, and of what it analyses besides."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from xlamini.staging.aot.stages import Lowered, Traced
    from xlamini.staging.compile.cost_report import CostReport
    from xlamini.staging.compile.ledger import Compilations
    from xlamini.staging.compile.memory_plan import MemoryPlan

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


@runtime_checkable
class Wrapped(Protocol[P, R]):
    """A jitted function, with the parameters and the result of the user's: it can be called, traced and lowered.

    >>> def traced(f: Wrapped, x):
    ...     return f.trace(x).jaxpr
    >>> print(traced(xlamini.jit(lambda x: x + 1), 1.0))
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    >>> isinstance(xlamini.jit(jnp.sin), Wrapped), isinstance(jnp.sin, Wrapped)
    (True, False)
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced: ...
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered: ...
    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    def compilations(self) -> Compilations: ...
    def clear_cache(self) -> None: ...


class JitFunction(Wrapped[P, R], Protocol[P, R]):
    """What `jit` returns: a `Wrapped` that also analyses its programs."""

    def cost(self, *args: P.args, **kwargs: P.kwargs) -> CostReport: ...
    def memory_plan(self, *args: P.args, **kwargs: P.kwargs) -> MemoryPlan: ...
