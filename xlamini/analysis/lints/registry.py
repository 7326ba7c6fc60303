"""The rules of `lint`, in the order in which they were defined."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from xlamini.analysis.lints.finding import Finding
from xlamini.analysis.lints.program import LintedProgram

Rule = Callable[[LintedProgram], Iterable[Finding]]

rules: dict[str, Rule] = {}
"""Each rule by the name of its function; `lint` applies all of them, unless it is told which.

>>> sorted(xlamini.debug.lint_rules)[:2]
['broadcast_blows_up', 'callback_in_a_loop']
>>> xlamini.lint(lambda x: x + 1, rules=["broadcast_blows_up"])(2.0)
nothing found
"""


def lint_rule(rule: Rule) -> Rule:
    """Decorator that makes a function a rule of `xlamini.lint`, under the function's name.

    A rule takes a program and yields findings. `program.equations()` are all equations, each with the body (the
    function, branch or loop) that it is in. `body.maker(atom)` is the equation that made an operand, `body.readers` are
    those that read a variable, and `body.loops` the loops around. A rule of the same name is replaced.

    >>> from xlamini.debug import finding, lint_rule
    >>> @lint_rule
    ... def cubes(program):
    ...     for body, eqn in program.equations():
    ...         if eqn.primitive.name == "integer_pow" and eqn.params["y"] == 3:
    ...             yield finding(eqn, "a cube", "Multiply.")
    >>> xlamini.lint(lambda x: x**3, rules=["cubes"])(2.0).found[0].message
    'a cube'
    >>> del xlamini.debug.lint_rules["cubes"]
    """
    rules[rule.__name__] = rule
    return rule
