# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy.signal.convolution import (
    convolve as convolve, convolve2d as convolve2d, correlate as correlate, correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from xlamini.scipy.signal.spectra import csd as csd, istft as istft, stft as stft, welch as welch
from xlamini.scipy.signal.trends import detrend as detrend
