# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy import (
    cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate, linalg as linalg,
    ndimage as ndimage, optimize as optimize, signal as signal, sparse as sparse, spatial as spatial,
    special as special, stats as stats,
)
