"""Where an equation comes from: the line of the user, the names around it, the rewrites that made it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from xlamini.core.errors.frames import Source
from xlamini.core.program.avals import Dims

if TYPE_CHECKING:
    from xlamini.core.program.jaxpr import Equation


class Provenance:
    """The source and scope of an equation; for one that a rewrite made, its name and the original equation.

    For one that vmap made, `lanes` says where the batch dimensions are: `(axis size, of operands, of results)`.
    """

    __slots__ = ("lanes", "origin", "rewrite", "scope", "source")
    origin: Equation | None
    rewrite: str | None
    scope: tuple[str, ...]
    source: Source | None

    def __init__(
        self,
        source: Source | None,
        scope: tuple[str, ...] = (),
        rewrite: str | None = None,
        origin: Equation | None = None,
    ):
        self.source, self.scope, self.rewrite, self.origin = source, scope, rewrite, origin
        self.lanes: tuple[int, Dims, Dims] | None = None

    @property
    def path(self) -> list[str]:
        """The rewrites that led from the user's equation to this one, oldest first: `['jvp of e3 tanh', …]`."""
        steps, here = [], self
        while here.origin is not None:
            steps.append(f"{here.rewrite} of e{here.origin.id} {here.origin.primitive.name}")
            here = here.origin.provenance
        return steps[::-1]

    @property
    def rewrites(self) -> set[str | None]:
        """The names of those rewrites."""
        names, here = set[str | None](), self
        while here.origin is not None:
            names.add(here.rewrite)
            here = here.origin.provenance
        return names

    @property
    def name_stack(self) -> str:
        """The names of `named_scope` around the equation, outermost first: `model/layer`."""
        return "/".join(self.scope)

    traceback = None
    """No Python traceback is kept: `source` is the user's line."""

    def describe(self) -> str:
        """The user's line and the rewrites, as one line of text."""
        where = str(self.source) if self.source is not None else "unknown place"
        return " <- ".join([where, *self.path])
