# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.staging.compile.cost import CostAnalysis as CostAnalysis
from xlamini.staging.compile.prediction import Prediction as Prediction
from xlamini.staging.aot.stages import (
    ArgInfo as ArgInfo, Compiled as Compiled, CompilerOptions as CompilerOptions, Lowered as Lowered, Stage as Stage,
    Traced as Traced, Wrapped as Wrapped,
)
