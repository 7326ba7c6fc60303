"""SciPy on xlamini, under the names JAX users know as `jax.scipy`: one module or package for each of SciPy's."""
from xlamini.core.lazy import lazy_parts

_PARTS = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)

__getattr__, __dir__ = lazy_parts(globals(), _PARTS)
