"""The rule about operations that a target cannot run: the lowering of each operation is asked."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedProgram
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Equation, Var
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct


@lint_rule
def no_kernel(program: LintedProgram) -> Iterator[Finding]:
    """A target that was asked about has no kernel for an operation."""
    for platform in program.targets:
        for _, eqn in program.equations():
            reason = None if eqn.primitive.higher_order else _refusal(eqn, platform)
            if reason is not None:
                fix = "Run this part on the CPU, or use an operation that the target has."
                yield finding(eqn, f"for {platform}: {reason}", fix)


def _refusal(eqn: Equation, platform: str) -> str | None:
    """Why the operation cannot be lowered for a platform; None if it can."""
    places = [i for i, a in enumerate(eqn.invars) if type(a) is Var]
    values = [a if type(a) is Var else a.val for a in eqn.invars]

    def alone(*operands: object) -> object:
        given = dict(zip(places, operands, strict=True))
        return eqn.primitive.bind(*[given.get(i, x) for i, x in enumerate(values)], **eqn.params)

    types = [ShapeDtypeStruct(eqn.invars[i].aval.shape, eqn.invars[i].aval.dtype) for i in places]
    try:
        jit(alone).trace(*types).lower(lowering_platforms=(platform,))
    except NotImplementedError as error:
        return str(error).splitlines()[0]
    return None
