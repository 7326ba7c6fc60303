"""Numbers with a name, and the warning about complex numbers made real."""
import math

import numpy as np

pi = math.pi
e = math.e
inf = math.inf
nan = math.nan
euler_gamma = 0.5772156649015329
newaxis = None
ComplexWarning = np.exceptions.ComplexWarning
