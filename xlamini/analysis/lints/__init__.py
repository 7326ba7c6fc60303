"""Private: what `xlamini.lint` looks for, a rule a function, a family a file.

Each rule takes a `LintedProgram` and yields findings. What vmap made of a program is known from the provenance of its
equations, so rules cost nothing while nobody lints.
"""

from xlamini.analysis.lints import (
    algebra as algebra,
    batching as batching,
    dtypes as dtypes,
    loops as loops,
    memory as memory,
    numerics as numerics,
    platforms as platforms,
    signature as signature,
)  # fmt: skip
from xlamini.analysis.lints.finding import Finding as Finding, Findings as Findings, finding as finding
from xlamini.analysis.lints.lint import lint as lint
from xlamini.analysis.lints.program import LintedProgram
from xlamini.analysis.lints.registry import lint_rule as lint_rule, rules as lint_rules
