"""The rules of calls in checked programs."""
from __future__ import annotations

from typing import Any

from xlamini.core import Jaxpr, Values, aval_of, is_differentiable
from xlamini.interpreters.check import Checked, Errors, check
from xlamini.interpreters.dce import dce
from xlamini.interpreters.error_values import ErrorPart
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import stop_gradient
from xlamini.staging.call.call_rules import Run


def checked_call(run: Run, errors: Errors, jaxpr: Jaxpr, operands: Values) -> Any:
    """The outputs and the error of a call, by a call of the checked jaxpr."""
    made = check(jaxpr, errors)
    return made.split_outputs(run(made.jaxpr, operands))


def errors_beside(jaxpr: Jaxpr, errors: Errors, operands: Values) -> ErrorPart:
    """The error of a call, computed beside it: the call itself keeps its rules."""
    made = check(jaxpr, errors)
    if not made.error.sites:
        return made.error
    fixed = [stop_gradient(x) if is_differentiable(aval_of(x)) else x for x in operands]
    return made.error.rebuilt(evaluate(_errors_only(made), fixed))


def _errors_only(made: Checked) -> Jaxpr:
    values = len(made.error.values)
    used = [False] * (len(made.jaxpr.outvars) - values) + [True] * values
    slim, _ = dce(made.jaxpr, tuple(used), True)
    return slim


UNCHECKED: Errors = frozenset()


def without_checks(jaxpr: Jaxpr) -> Jaxpr:
    """The program without checks of the user's."""
    return check(jaxpr, UNCHECKED).jaxpr
