"""Rows of the Fourier and cosine transforms."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from tests.rows.row import COMPLEXES, Arg, Row
from xlamini import lax
from xlamini.numpy import fft
from xlamini.scipy import fft as cosine

WIDE = ("float32", "float64")
NARROW = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}


def row(name: str, op: Any, reference: Any, *shapes: tuple[int, ...], dtypes: Any = WIDE, **options: Any) -> Row:
    samples = [[Arg(s)] for s in shapes]
    return Row(name, op, reference, samples, dtypes, tolerance=NARROW, linear=True, **options)


def titled(name: str, arguments: dict[str, Any]) -> str:
    """A row's name: the function's, and its arguments."""
    return ": ".join(filter(None, [name, ", ".join(f"{k}={v}" for k, v in arguments.items())]))


def of_numpy(name: str, shape: tuple[int, ...] = (3, 4), dtypes: Any = (*WIDE, *COMPLEXES), **arguments: Any) -> Row:
    """A function with these arguments, beside NumPy's of the same name."""
    mine, reference = getattr(fft, name), getattr(np.fft, name)
    full = titled(f"numpy.fft.{name}", arguments)
    return row(full, lambda x: mine(x, **arguments), lambda x: reference(x, **arguments), shape, dtypes=dtypes, order=1)


def of_scipy(name: str, **arguments: Any) -> Row:
    mine, reference = getattr(cosine, name), getattr(scipy.fft, name)
    full = titled(f"scipy.fft.{name}", arguments)
    return row(full, lambda x: mine(x, **arguments), lambda x: reference(x, **arguments), (3, 5), (4, 2), order=1)


ROWS = [
    row("fft", lambda x: lax.fft(x, "FFT", (4,)), np.fft.fft, (3, 4), dtypes=(*WIDE, *COMPLEXES)),
    row("fft: IFFT", lambda x: lax.fft(x, "IFFT", (3, 4)), np.fft.ifft2, (2, 3, 4), dtypes=COMPLEXES),
    row("fft: RFFT", lambda x: lax.fft(x, "RFFT", (3, 4)), np.fft.rfft2, (3, 4), (2, 3, 4)),
    row("fft: RFFT, odd", lambda x: lax.fft(x, "RFFT", (5,)), np.fft.rfft, (2, 5), (5,)),
    row("fft: IRFFT", lambda x: lax.fft(x, "IRFFT", (6,)), np.fft.irfft, (2, 4), dtypes=COMPLEXES),
    row("fft: IRFFT, odd", lambda x: lax.fft(x, "IRFFT", (2, 5)), lambda x: np.fft.irfft2(x, (2, 5)), (2, 3),
        dtypes=COMPLEXES),
    *(of_numpy(name) for name in ("fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "fftn", "ifftn")),
    *(of_numpy(name, dtypes=WIDE) for name in ("rfft", "ihfft", "rfft2", "rfftn")),
    of_numpy("irfftn", axes=(0, 1)),
    of_numpy("fft", n=6, axis=0, norm="ortho"),
    of_numpy("ifft", n=3, norm="forward"),
    of_numpy("rfft", n=3, axis=0, norm="ortho", dtypes=WIDE),
    of_numpy("irfft", n=5, axis=0, norm="forward"),
    of_numpy("hfft", n=5, norm="ortho"),
    of_numpy("ihfft", n=5, norm="forward", dtypes=WIDE),
    of_numpy("fftn", shape=(2, 3, 2, 2), axes=(0, 1, 2, 3)),
    of_numpy("rfftn", shape=(2, 1, 2, 3), norm="ortho", dtypes=WIDE),
    of_numpy("irfftn", shape=(2, 2, 2, 2), axes=(0, 1, 2, 3), norm="ortho"),
    of_numpy("fftshift"),
    of_numpy("fftshift", axes=(1,)),
    of_numpy("ifftshift"),
    Row("numpy.fft.fftfreq", lambda d: fft.fftfreq(5, d), lambda d: np.fft.fftfreq(5, d), [[Arg((), (1, 2))]], WIDE),
    Row("numpy.fft.rfftfreq", lambda d: fft.rfftfreq(6, d), lambda d: np.fft.rfftfreq(6, d), [[Arg((), (1, 2))]], WIDE),
    *(of_scipy(name, type=kind) for name in ("dct", "idct") for kind in (1, 2, 3, 4)),
    *(of_scipy(name, type=kind, norm="ortho") for name in ("dct", "idct") for kind in (1, 2, 3, 4)),
    of_scipy("dctn"),
    of_scipy("dctn", s=(3,), axes=(1,), norm="forward"),
    of_scipy("idctn", norm="ortho"),
]
