"""Fourier and cosine transforms."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini import jit, lax
from xlamini.errors import ShapeError
from xlamini.numpy import fft
from xlamini.scipy import fft as cosine

C = ones(4, dtype="complex64")

ROWS = [
    row("kind", lambda: lax.fft(C, "DFT", (4,)), ValueError, "one of FFT, IFFT, RFFT, IRFFT, got 'DFT'"),
    row("length", lambda: lax.fft(C, "FFT", (3,)), ShapeError, "FFT with fft_lengths (3,)", "ends with (3,)", "c64[4]"),
    row("half", lambda: lax.fft(C, "IRFFT", (4,)), ShapeError, "IRFFT", "ends with (3,)", "got c64[4]"),
    row("four axes", lambda: lax.fft(ones(1, 1, 1, 1), "FFT", (1, 1, 1, 1)), ShapeError, "one to three dimensions"),
    row("complex", lambda: lax.fft(C, "RFFT", (4,)), TypeError, "RFFT is of float32 or float64, got c64[4]"),
    row("rfft of complex", lambda: fft.rfft(C), ValueError, "rfft: real numbers are needed, got c64[4]", "use fft"),
    row("norm", lambda: fft.fft(C, norm="unit"), ValueError, "'backward', 'ortho' or 'forward', got 'unit'"),
    row("n", lambda: fft.fft(C, n=0), ValueError, "lengths must be positive, got (0,)"),
    row("n not whole", lambda: fft.fft(C, n=2.5), TypeError, "fft: a length must be an integer, got 2.5"),
    row("axis", lambda: fft.fft(C, axis=1), ValueError, "axis 1 is out of range"),
    row("scalar", lambda: fft.fft(1.0), ValueError, "a scalar has none"),
    row("one axis of two", lambda: fft.fft2(ones(2, 2), axes=(0,)), ValueError, "two axes are needed", "fftn"),
    row("axis twice", lambda: fft.fftn(ones(2, 2), axes=(0, 0)), ValueError, "fftn: axis (0, 0) names an axis twice"),
    row("lengths", lambda: fft.fftn(ones(2, 2), s=(2,), axes=(0, 1)), ValueError, "1 lengths (2,) for 2 axes"),
    row("under jit", lambda: jit(lambda x: fft.irfft(x, n="4"))(C), TypeError, "irfft: a length must be an integer"),
    row("frequencies", lambda: fft.fftfreq(-1), ValueError, "fftfreq: n must not be negative, got -1"),
    row("cosine type", lambda: cosine.dct(ones(3), type=5), ValueError, "dct: type must be 1, 2, 3 or 4, got 5"),
    row("cosine norm", lambda: cosine.idct(ones(3), norm=""), ValueError, "idct: norm must be", "got ''"),
    row("too short", lambda: cosine.dct(ones(1), type=1), ValueError, "type 1 needs at least 2 elements"),
]
