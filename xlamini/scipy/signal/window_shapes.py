"""Tapering windows by name, as NumPy arrays: one period of them, as spectra need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_COSINES: dict[str, Sequence[float]] = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
"""Weights of cos(0), -cos(x), cos(2x)…: Harris, "On the use of windows for harmonic analysis", 1978."""

_OTHER_NAMES = {
    "box": "boxcar",
    "ones": "boxcar",
    "rect": "boxcar",
    "rectangular": "boxcar",
    "hanning": "hann",
    "han": "hann",
    "hamm": "hamming",
    "ham": "hamming",
    "black": "blackman",
    "blk": "blackman",
    "nutt": "nuttall",
    "blackharr": "blackmanharris",
    "bkh": "blackmanharris",
    "flat": "flattop",
    "flt": "flattop",
    "bart": "bartlett",
    "brt": "bartlett",
    "triangle": "triang",
    "tri": "triang",
    "parz": "parzen",
    "par": "parzen",
    "bman": "bohman",
    "bmn": "bohman",
    "brthan": "barthann",
    "bth": "barthann",
    "halfcosine": "cosine",
    "tuk": "tukey",
    "ksr": "kaiser",
    "gauss": "gaussian",
    "gss": "gaussian",
    "poisson": "exponential",
    "sinc": "lanczos",
}


def window_of(name: str, window: Any, length: int) -> np.ndarray:
    """One period of the window called `window`: its name, or a tuple of its name and parameters.

    Raises ValueError, naming the function, for an unknown window, or for parameters that it does not take.
    """
    kind, *parameters = (window,) if isinstance(window, str) else window
    kind = _OTHER_NAMES.get(kind, kind)
    if kind in _COSINES:
        kind, parameters = "general_cosine", [_COSINES[kind], *parameters]
    if kind not in _SHAPES:
        raise ValueError(
            f"{name}: window {window!r} is not known; it is one of {', '.join(sorted((*_COSINES, *_SHAPES)))}, or give "
            "an array"
        )
    if length == 1:
        return np.ones(1)
    try:
        return _SHAPES[kind](length + 1, *parameters)[:-1]
    except TypeError as error:
        raise ValueError(f"{name}: window {window!r} lacks a parameter, or has one too many: {error}") from None


def _centred(n: int) -> np.ndarray:
    """The distances from the middle."""
    return np.arange(n) - (n - 1) / 2


def _general_cosine(n: int, weights: Sequence[float]) -> np.ndarray:
    angle = np.linspace(-np.pi, np.pi, n)
    return np.sum([w * np.cos(k * angle) for k, w in enumerate(weights)], axis=0)


def _general_hamming(n: int, alpha: float) -> np.ndarray:
    return _general_cosine(n, (alpha, 1 - alpha))


def _triang(n: int) -> np.ndarray:
    return 1 - np.abs(_centred(n)) / ((n + n % 2) / 2 if n % 2 == 0 else (n + 1) / 2)


def _parzen(n: int) -> np.ndarray:
    far = np.abs(_centred(n)) / (n / 2)
    return np.where(far <= (n - 1) / 4 / (n / 2), 1 - 6 * far**2 * (1 - far), 2 * (1 - far) ** 3)


def _bohman(n: int) -> np.ndarray:
    far = np.abs(np.linspace(-1, 1, n))
    inside = (1 - far) * np.cos(np.pi * far) + np.sin(np.pi * far) / np.pi
    inside[[0, -1]] = 0
    return inside


def _barthann(n: int) -> np.ndarray:
    far = np.abs(np.arange(n) / (n - 1) - 0.5)
    return 0.62 - 0.48 * far + 0.38 * np.cos(2 * np.pi * far)


def _cosine(n: int) -> np.ndarray:
    return np.sin(np.pi / n * (np.arange(n) + 0.5))


def _tukey(n: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(n)
    near = np.minimum(np.arange(n), n - 1 - np.arange(n))
    return np.where(near < alpha * (n - 1) / 2, (1 - np.cos(2 * np.pi * near / alpha / (n - 1))) / 2, 1)


def _gaussian(n: int, std: float) -> np.ndarray:
    return np.exp(-((_centred(n) / std) ** 2) / 2)


def _general_gaussian(n: int, p: float, sig: float) -> np.ndarray:
    return np.exp(-0.5 * np.abs(_centred(n) / sig) ** (2 * p))


def _exponential(n: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    middle = (n - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(n) - middle) / tau)


def _lanczos(n: int) -> np.ndarray:
    return np.sinc(2 * np.arange(n) / (n - 1) - 1)


_SHAPES: dict[str, Callable[..., np.ndarray]] = {
    "general_cosine": _general_cosine,
    "general_hamming": _general_hamming,
    "bartlett": np.bartlett,
    "triang": _triang,
    "parzen": _parzen,
    "bohman": _bohman,
    "barthann": _barthann,
    "cosine": _cosine,
    "tukey": _tukey,
    "kaiser": np.kaiser,
    "gaussian": _gaussian,
    "general_gaussian": _general_gaussian,
    "exponential": _exponential,
    "lanczos": _lanczos,
}
