"""`jax._src.literals`: typed constants, which are plain scalars here."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)


class TypedNdArray:
    """A NumPy array with a weak type, of which there are none: constants are scalars or arrays."""

    def __init__(self, *args: object, **kwargs: object):
        raise TypeError("TypedNdArray: there are none in xlamini; pass a NumPy array, a number or an Array")
