"""Segment reductions: segment_sum, segment_prod, segment_max, segment_min."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.segments import segment_max as segment_max
from xlamini.numpy.segments import segment_min as segment_min
from xlamini.numpy.segments import segment_prod as segment_prod
from xlamini.numpy.segments import segment_sum as segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_edge_of_face(globals())
