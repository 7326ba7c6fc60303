"""Fourier transforms, under the names of `jax.numpy.fft`."""

# fmt: off
from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.fft.frequencies import (
    fftfreq as fftfreq,
)
from xlamini.numpy.fft.frequencies import (
    fftshift as fftshift,
)
from xlamini.numpy.fft.frequencies import (
    ifftshift as ifftshift,
)
from xlamini.numpy.fft.frequencies import (
    rfftfreq as rfftfreq,
)
from xlamini.numpy.fft.transforms import (
    fft as fft,
)
from xlamini.numpy.fft.transforms import (
    fft2 as fft2,
)
from xlamini.numpy.fft.transforms import (
    fftn as fftn,
)
from xlamini.numpy.fft.transforms import (
    hfft as hfft,
)
from xlamini.numpy.fft.transforms import (
    ifft as ifft,
)
from xlamini.numpy.fft.transforms import (
    ifft2 as ifft2,
)
from xlamini.numpy.fft.transforms import (
    ifftn as ifftn,
)
from xlamini.numpy.fft.transforms import (
    ihfft as ihfft,
)
from xlamini.numpy.fft.transforms import (
    irfft as irfft,
)
from xlamini.numpy.fft.transforms import (
    irfft2 as irfft2,
)
from xlamini.numpy.fft.transforms import (
    irfftn as irfftn,
)
from xlamini.numpy.fft.transforms import (
    rfft as rfft,
)
from xlamini.numpy.fft.transforms import (
    rfft2 as rfft2,
)
from xlamini.numpy.fft.transforms import (
    rfftn as rfftn,
)

_edge_of_face(globals())
