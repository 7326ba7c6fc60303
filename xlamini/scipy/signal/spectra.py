"""Spectra of segments of a signal: short-time Fourier transforms, and power spectra averaged over segments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapeError, aval_of
from xlamini.core.sizes.expression import max_size
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.exponential import sqrt
from xlamini.numpy.fft import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from xlamini.numpy.medians import median
from xlamini.numpy.padding import pad
from xlamini.numpy.statistics import mean
from xlamini.primitives import (
    COMPLEX,
    conj,
    convert,
    imag,
    kind_of,
    moveaxis,
    real,
    reshape,
    slice_in_dim,
    transpose,
    where,
)
from xlamini.primitives.elementwise.complex import complex as complex_
from xlamini.runtime import Array
from xlamini.scipy.signal.segments import SignalSegments, checked, complex_like, cut, overlapped, window_and_length
from xlamini.scipy.signal.trends import without_trend
from xlamini.staging import composite
from xlamini.typing import ArrayLike

Detrend = bool | str | Callable[[Any], Any]
_BOUNDARIES = ("zeros", "even", "odd", "constant", None)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform along `axis`: frequencies, times of the segments, and their spectra.

    Frequencies take the place of `axis`, segments come last. `fs` is the sampling frequency; `window` is a name, a
    tuple of a name and parameters, or a vector; `nperseg`, `noverlap` (half of it) and `nfft` are the lengths of a
    segment, of what it shares with the next one, and of its transform. `detrend` is False, "constant", "linear" or a
    function of the segments. `boundary` ("zeros", "even", "odd", "constant", None) says how the signal goes on before
    and after, `padded` that zeros fill up the last segment. ValueError for lengths or names that do not fit.

    >>> frequencies, times, spectra = stft(jnp.ones(8), nperseg=4)
    >>> frequencies.shape, times.shape, spectra.shape
    ((3,), (5,), (3, 5))
    """
    name = "stft"
    _check_detrend(name, detrend)
    if boundary not in _BOUNDARIES:
        raise ValueError(f"{name}: boundary must be one of {', '.join(map(repr, _BOUNDARIES))}, got {boundary!r}")
    x = as_operand(name, x)
    along = as_axis(name, axis, x.ndim)
    if not x.size:
        return _nothing(x), _nothing(x), _nothing(x, True)
    onesided = _onesided(name, return_onesided, x)
    win, length = window_and_length(name, window, nperseg, x.shape[along])
    segments = checked(name, length, noverlap, nfft)
    plan = _Plan(segments, detrend, onesided, boundary, bool(padded), along, "stft")
    starts = length / 2 * (boundary is None)
    spectra = _spectra(x, None, as_operand(name, win), fs, plan)
    times = starts + segments.step * np.arange(spectra.shape[-1])
    return _frequencies(segments, onesided, fs, x), _in_time(times, fs, x), spectra


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectrum of two signals along `axis`, averaged over segments (Welch): frequencies, and it.

    `y` None is x, with a real result; the shorter signal is filled up with zeros. `scaling` is "density" (power for
    each unit of frequency) or "spectrum", `average` "mean" or "median". The other arguments are those of `stft`.
    ShapeError for signals that do not fit each other, ValueError for lengths or names that do not fit.

    >>> frequencies, power = csd(jnp.arange(8.0), jnp.ones(8), nperseg=4)
    >>> frequencies.shape, power.shape
    ((3,), (3,))
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _density("csd", x, y, *options)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectrum of a signal along `axis`, averaged over segments: frequencies, and it; see `csd`.

    >>> frequencies, power = welch(jnp.arange(8.0), nperseg=4)
    >>> power.dtype
    dtype('float32')
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _density("welch", x, None, *options)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal whose `stft` is nearest to `Zxx` by least squares: times, and the signal.

    The arguments are those that `stft` was given; `boundary` says whether the signal was extended. ShapeError for
    axes that do not fit, ValueError for lengths that do not.

    >>> times, signal = istft(stft(jnp.arange(8.0), nperseg=4)[2])
    >>> jnp.allclose(signal, jnp.arange(8.0), atol=1e-4)
    Array(True, dtype=bool)
    """
    name = "istft"
    z = as_operand(name, Zxx)
    if z.ndim < 2:
        raise ShapeError(f"{name}: Zxx needs a dimension of frequencies and one of times, got shape {z.shape}")
    time, frequency = as_axis(name, time_axis, z.ndim), as_axis(name, freq_axis, z.ndim)
    if time == frequency:
        raise ValueError(f"{name}: time_axis and freq_axis are both {time_axis}; they must differ")
    whole = 2 * (z.shape[frequency] - 1) if input_onesided else z.shape[frequency]
    win, length = window_and_length(name, window, nperseg or whole, max_size(whole, nperseg or 0))
    transform = nfft if nfft is not None else length if input_onesided and length == whole + 1 else whole
    segments = checked(name, length, noverlap, transform)
    others = [d for d in range(z.ndim) if d not in (time, frequency)]
    rows = transpose(z, (*others, time, frequency))
    signal = _signal(rows, as_operand(name, win), segments, bool(input_onesided), bool(boundary))
    times = _in_time(np.arange(signal.shape[-1]), fs, z)
    return times, moveaxis(signal, signal.ndim - 1, time - (frequency < time))


# --- helpers


class _Plan(NamedTuple):
    """The static parameters of a spectrum."""

    segments: SignalSegments
    detrend: Any
    onesided: bool
    boundary: str | None
    padded: bool
    axis: int
    scaling: str
    average: str = "mean"


def _density(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Any, Any]:
    _check_detrend(name, detrend)
    for what, given, known in (("scaling", scaling, ("density", "spectrum")), ("average", average, ("mean", "median"))):
        if given not in known:
            raise ValueError(f"{name}: {what} must be {known[0]!r} or {known[1]!r}, got {given!r}")
    x = as_operand(name, x)
    y = None if y is None else as_operand(name, y)
    along = as_axis(name, axis, x.ndim)
    both = [x] if y is None else _of_one_length(name, x, y, along)
    if not all(v.size for v in both):
        return _nothing(x), _nothing(x)
    onesided = _onesided(name, return_onesided, *both)
    win, length = window_and_length(name, window, nperseg, both[0].shape[along])
    segments = checked(name, length, noverlap, nfft)
    plan = _Plan(segments, detrend, onesided, None, False, along, scaling, average)
    power = _spectra(both[0], None if y is None else both[1], as_operand(name, win), fs, plan)
    return _frequencies(segments, onesided, fs, *both), power


def _of_one_length(name: str, x: Any, y: Any, axis: int) -> list[Any]:
    """Both signals in one length, the shorter one padded with zeros."""
    fits = x.ndim == y.ndim and all(
        n == m or 1 in (n, m) for d, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)) if d != axis
    )
    if not fits:
        raise ShapeError(f"{name}: x and y must broadcast besides axis {axis}, got shapes {x.shape} and {y.shape}")
    longest = max(x.shape[axis], y.shape[axis])
    return [pad(v, [(0, (longest - v.shape[axis]) * (d == axis)) for d in range(v.ndim)]) for v in (x, y)]


@composite(static=("plan",))
def _spectra(x: Any, y: Any, window: Any, fs: Any, plan: _Plan) -> Any:
    dtype, wide = complex_like(x) if y is None else complex_like(x, y)
    window = convert(window, wide if kind_of(aval_of(window).dtype) is COMPLEX else dtype)
    first = _transformed(x, window, dtype, wide, plan)
    if plan.scaling == "stft":
        rank = first.ndim
        scaled = first / sqrt((window.sum() ** 2).astype(dtype))
        return moveaxis(moveaxis(scaled, rank - 1, rank - 2), rank - 2, plan.axis)
    second = first if y is None else _transformed(y, window, dtype, wide, plan)
    products = real(first) ** 2 + imag(first) ** 2 if y is None else conj(first) * second
    total = (window * window).sum() * fs if plan.scaling == "density" else window.sum() ** 2
    averaged = _averaged(_both_sides(products / total, plan), plan.average)
    return moveaxis(averaged, averaged.ndim - 1, plan.axis)


def _transformed(x: Any, window: Any, dtype: Any, wide: Any, plan: _Plan) -> Any:
    """(…, segment, frequency)."""
    segments = plan.segments
    x = convert(x, wide if kind_of(aval_of(x).dtype) is COMPLEX else dtype)
    x = _extended(moveaxis(x, plan.axis, x.ndim - 1), segments.length // 2, plan.boundary)
    if plan.padded:
        missing = -(x.shape[-1] - segments.length) % segments.step % segments.length
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    rows = cut(x, segments)
    if callable(plan.detrend):
        rows = plan.detrend(rows)
    elif plan.detrend:
        rows = without_trend(rows, rows.ndim - 1, plan.detrend, (0,))
    return (rfft if plan.onesided else fft)(rows * window, segments.transform)


def _extended(x: Any, count: int, boundary: str | None) -> Any:
    around = [(0, 0)] * (x.ndim - 1) + [(count, count)]
    if boundary is None or not count:
        return x
    if boundary == "odd":
        return 2 * pad(x, around, "edge") - pad(x, around, "reflect")
    return pad(x, around, {"zeros": "constant", "even": "reflect", "constant": "edge"}[boundary])


def _both_sides(power: Any, plan: _Plan) -> Any:
    """Add the power of the negative frequencies, which a one-sided spectrum leaves out."""
    if not plan.onesided:
        return power
    count = aval_of(power).shape[-1]
    factors = np.full(count, 2.0)
    factors[0] = 1
    if not plan.segments.transform % 2:
        factors[-1] = 1
    return power * factors.astype(np.zeros((), power.dtype).real.dtype)


def _averaged(power: Any, average: str) -> Any:
    if average == "mean":
        return mean(power, -2)
    even = 2 * np.arange(1, (power.shape[-2] - 1) // 2 + 1)
    bias = float(1 + np.sum(1 / (even + 1) - 1 / even))
    if kind_of(aval_of(power).dtype) is COMPLEX:
        return complex_(median(real(power), -2), median(imag(power), -2)) / bias
    return median(power, -2) / bias


@composite(static=("segments", "onesided", "boundary"))
def _signal(rows: Any, window: Any, segments: SignalSegments, onesided: bool, boundary: bool) -> Any:
    """The windowed segments added up, over the sum of the squares of the windows."""
    dtype, wide = complex_like(rows)
    window = convert(window, dtype)
    pieces = (irfft if onesided else ifft)(convert(rows, wide), segments.transform)
    pieces = slice_in_dim(pieces, 0, segments.length, axis=pieces.ndim - 1)
    count = pieces.shape[-2]
    total = overlapped(pieces * window, segments.step) * window.sum()
    weights = overlapped(reshape(window * window, (1, segments.length)).repeat(count, 0), segments.step)
    signal = total / where(weights > 1e-10, weights, weights * 0 + 1)
    half = segments.length // 2
    return slice_in_dim(signal, half, signal.shape[-1] - half, axis=signal.ndim - 1) if boundary else signal


def _check_detrend(name: str, detrend: Any) -> None:
    if not callable(detrend) and detrend is not False and detrend not in ("constant", "linear"):
        raise ValueError(f"{name}: detrend must be False, 'constant', 'linear' or a function, got {detrend!r}")


def _onesided(name: str, wanted: bool, *signals: Any) -> bool:
    if wanted and any(kind_of(aval_of(x).dtype) is COMPLEX for x in signals):
        warnings.warn(f"{name}: the signal is complex, so its spectrum has both sides", stacklevel=4)
        return False
    return bool(wanted)


def _frequencies(segments: SignalSegments, onesided: bool, fs: Any, *signals: Any) -> Any:
    dtype, _ = complex_like(*signals)
    return convert((rfftfreq if onesided else fftfreq)(segments.transform, 1 / fs), dtype)


def _in_time(samples: np.ndarray, fs: Any, x: Any) -> Any:
    dtype, _ = complex_like(x)
    return convert(as_operand("stft", samples.astype(dtype)) / fs, dtype)


def _nothing(x: Any, spectra: bool = False) -> Any:
    dtype, wide = complex_like(x)
    return convert(x, wide if spectra else dtype)
