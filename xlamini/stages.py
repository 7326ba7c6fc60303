"""The stages of a jitted function: `jit(f).trace(x)` -> Traced, `.lower()` -> Lowered, `.compile()` -> Compiled."""

from xlamini.transforms.stages import Compiled as Compiled, Lowered as Lowered, Stage as Stage, Traced as Traced
