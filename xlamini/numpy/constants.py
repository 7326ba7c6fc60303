"""Numbers with a name."""
import math

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
euler_gamma = 0.5772156649015329
newaxis = None
