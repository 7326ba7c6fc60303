"""Refs: arrays that a function can read and write in place."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.refs import Ref as Ref
from xlamini.numpy.refs import addupdate as addupdate
from xlamini.numpy.refs import freeze as freeze
from xlamini.numpy.refs import get as get
from xlamini.numpy.refs import new_ref as new_ref
from xlamini.numpy.refs import set as set
from xlamini.numpy.refs import swap as swap

__all__ = ["Ref", "addupdate", "freeze", "get", "new_ref", "set", "swap"]

_edge_of_face(globals())
