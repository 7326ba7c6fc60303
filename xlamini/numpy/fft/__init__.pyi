# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.fft.frequencies import (
    fftfreq as fftfreq, fftshift as fftshift, ifftshift as ifftshift, rfftfreq as rfftfreq,
)
from xlamini.numpy.fft.transforms import (
    fft as fft, fft2 as fft2, fftn as fftn, hfft as hfft, ifft as ifft, ifft2 as ifft2, ifftn as ifftn, ihfft as ihfft,
    irfft as irfft, irfft2 as irfft2, irfftn as irfftn, rfft as rfft, rfft2 as rfft2, rfftn as rfftn,
)
