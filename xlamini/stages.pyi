# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.runtime.execution.executable import CompilerOptions as CompilerOptions
from xlamini.staging.aot.jit_type import Wrapped as Wrapped
from xlamini.staging.aot.stages import (
    ArgInfo as ArgInfo, Compiled as Compiled, Lowered as Lowered, Stage as Stage, Traced as Traced,
)
from xlamini.staging.compile.cost import CostAnalysis as CostAnalysis
from xlamini.staging.compile.prediction import Prediction as Prediction
