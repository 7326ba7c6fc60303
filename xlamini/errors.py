"""The public error classes; each docstring shows a failing program and its fix."""

from xlamini.core.errors import (
    CallbackError,
    ConcretizationTypeError,
    DeletedArrayError,
    JAXIndexError,
    JaxprError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    MissingRule,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)

JaxprTypeError = JaxprError

__all__ = [
    "CallbackError",
    "ConcretizationTypeError",
    "DeletedArrayError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingRule",
    "NonConcreteBooleanIndexError",
    "ShapeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]
