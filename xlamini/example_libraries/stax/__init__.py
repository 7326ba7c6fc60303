"""Neural-network layers as pairs of functions, `(init_fun, apply_fun)`, and how to compose them.

    output_shape, params = init_fun(rng, input_shape)
    outputs = apply_fun(params, inputs, rng=None)

Params are tuples and lists of arrays. A shape may have -1 for the batch size. Inputs are arrays of the shape that
init_fun was given, or a list of arrays for a list of shapes; where they do not fit, the operations of the layer raise
ShapeError.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
