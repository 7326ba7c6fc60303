"""Signals: convolution, trends and spectra, under the names of `jax.scipy.signal`."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.scipy.signal.convolution import convolve as convolve
from xlamini.scipy.signal.convolution import convolve2d as convolve2d
from xlamini.scipy.signal.convolution import correlate as correlate
from xlamini.scipy.signal.convolution import correlate2d as correlate2d
from xlamini.scipy.signal.convolution import fftconvolve as fftconvolve
from xlamini.scipy.signal.spectra import csd as csd
from xlamini.scipy.signal.spectra import istft as istft
from xlamini.scipy.signal.spectra import stft as stft
from xlamini.scipy.signal.spectra import welch as welch
from xlamini.scipy.signal.trends import detrend as detrend

_edge_of_face(globals())
