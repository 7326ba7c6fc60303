"""Rows of signals: numpy's and scipy's convolutions and spectra beside NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as reference

from tests.rows.reductions import LOOSE
from tests.rows.row import Arg, Row
from xlamini import numpy as jnp
from xlamini.scipy import signal

FEW = ("float32", "float64", "complex128")
REAL = ("float32", "float64")
ROUGH = {**LOOSE, "float16": 2e-2, "bfloat16": 2e-1, "float32": 3e-5, "float64": 1e-11, "complex128": 1e-11}
VECTORS = [[Arg((5,)), Arg((3,))], [Arg((3,)), Arg((6,))]]
MATRICES = [[Arg((3, 4)), Arg((2, 3))]]
WELCH = {"nperseg": 6, "noverlap": 2, "nfft": 8}


def each(name: str, ours: Any, theirs: Any, samples: Any, dtypes: Any = FEW, **options: Any) -> list[Row]:
    """A row for each mode."""
    return [
        Row(
            f"{name}: {mode}",
            lambda x, y, mode=mode: ours(x, y, mode=mode, **options),
            lambda x, y, mode=mode: theirs(x, y, mode=mode, **options),
            samples=samples,
            dtypes=dtypes,
            order=1,
            tolerance=ROUGH,
        )
        for mode in ("full", "same", "valid")
    ]


ROWS = [
    *each("numpy.convolve", jnp.convolve, np.convolve, VECTORS, (*FEW, "float16")),
    *each("numpy.correlate", jnp.correlate, np.correlate, VECTORS),
    *each("scipy.signal.convolve", signal.convolve, reference.convolve, MATRICES, method="direct"),
    *each("scipy.signal.convolve: fft", signal.convolve, reference.convolve, MATRICES, ("float64",), method="fft"),
    *each("scipy.signal.correlate", signal.correlate, reference.correlate, MATRICES, method="direct"),
    *each("scipy.signal.convolve2d", signal.convolve2d, reference.convolve2d, MATRICES, REAL),
    *each("scipy.signal.correlate2d", signal.correlate2d, reference.correlate2d, MATRICES),
    *each("scipy.signal.fftconvolve", signal.fftconvolve, reference.fftconvolve, MATRICES),
    Row(
        "scipy.signal.detrend", signal.detrend, reference.detrend, samples=[[Arg((2, 6))]], dtypes=REAL, order=1,
        linear=True, tolerance={**ROUGH, "float32": 1e-4},
    ),
    Row(
        "scipy.signal.detrend: pieces", lambda x: signal.detrend(x, 0, bp=[2, 4]),
        lambda x: reference.detrend(x, 0, bp=[2, 4]), samples=[[Arg((7, 2))]], dtypes=REAL, order=1, linear=True,
        tolerance={**ROUGH, "float32": 1e-4},
    ),
    Row(
        "scipy.signal.stft", lambda x: signal.stft(x, nperseg=6)[2], lambda x: reference.stft(x, nperseg=6)[2],
        samples=[[Arg((2, 16))]], dtypes=REAL, order=1, linear=True, tolerance=ROUGH,
    ),
    Row(
        "scipy.signal.istft", lambda z: signal.istft(z, nperseg=6)[1], lambda z: reference.istft(z, nperseg=6)[1],
        samples=[[Arg((4, 5))]], dtypes=("complex128",), differentiable=False, tolerance=ROUGH,
    ),
    Row(
        "scipy.signal.welch", lambda x: signal.welch(x, 2.0, **WELCH)[1], lambda x: reference.welch(x, 2.0, **WELCH)[1],
        samples=[[Arg((2, 20))]], dtypes=REAL, order=1, tolerance=ROUGH,
    ),
    Row(
        "scipy.signal.csd", lambda x, y: signal.csd(x, y, **WELCH)[1], lambda x, y: reference.csd(x, y, **WELCH)[1],
        samples=[[Arg((20,)), Arg((20,))]], dtypes=REAL, order=1, tolerance=ROUGH,
    ),
]  # fmt: skip
