"""SciPy on xlamini, under the names JAX users know as `jax.scipy`: one module or package for each of SciPy's."""
from importlib import import_module
from typing import Any

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


def __getattr__(name: str) -> Any:
    """Parts are imported when they are first named."""
    if name in _PARTS:
        return import_module(f"xlamini.scipy.{name}")
    raise AttributeError(f"module 'xlamini.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
