"""The stages of a jitted function: `jit(f).trace(x)` -> Traced, `.lower()` -> Lowered, `.compile()` -> Compiled."""

from xlamini.staging.aot.stages import ArgInfo as ArgInfo
from xlamini.staging.aot.stages import Compiled as Compiled
from xlamini.staging.aot.stages import CompilerOptions as CompilerOptions
from xlamini.staging.aot.stages import Lowered as Lowered
from xlamini.staging.aot.stages import Stage as Stage
from xlamini.staging.aot.stages import Traced as Traced
from xlamini.staging.aot.stages import Wrapped as Wrapped
from xlamini.staging.compile.cost import CostAnalysis as CostAnalysis
from xlamini.staging.compile.prediction import Prediction as Prediction
