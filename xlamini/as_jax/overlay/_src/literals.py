"""`jax._src.literals`: typed constants."""

from xlamini.as_jax.jaxprs.literals import (
    TypedComplex as TypedComplex,
    TypedFloat as TypedFloat,
    TypedInt as TypedInt,
    TypedNdArray as TypedNdArray,
)
from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
