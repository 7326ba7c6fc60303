"""Image resampling: resize, scale_and_translate."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.resampling import ResizeMethod as ResizeMethod
from xlamini.numpy.resampling import resize as resize
from xlamini.numpy.resampling import scale_and_translate as scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_edge_of_face(globals())
