"""`jax._src.numpy.util`: arguments in a dtype in common."""

from typing import Any

from xlamini import Array
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay._src.dtypes import to_complex_dtype, to_inexact_dtype, to_numeric_dtype
from xlamini.dtypes import result_type
from xlamini.numpy import asarray
from xlamini.primitives.base.promotion import broadcasted, check_operands, promoted, promoted_inexact
from xlamini.primitives.elementwise.convert_element_type import convert

__getattr__ = fall_through(__name__)


def promote_dtypes(*args: Any) -> list[Array]:
    """The arguments as arrays of the dtype that holds them all."""
    return _in_dtype(args, lambda dtype: dtype)


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """`promote_dtypes`, with floats for integers and booleans."""
    return _in_dtype(args, to_inexact_dtype)


def promote_dtypes_numeric(*args: Any) -> list[Array]:
    """`promote_dtypes`, with integers for booleans."""
    return _in_dtype(args, to_numeric_dtype)


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """The arguments as arrays of the complex dtype that holds them all."""
    return _in_dtype(args, to_complex_dtype)


def _in_dtype(args: tuple[Any, ...], raised: Any) -> list[Array]:
    dtype, weak = result_type(*args, return_weak_type_flag=True)
    return [convert(asarray(x), raised(dtype), weak) for x in args]


def promote_shapes(fun_name: str, *args: Any) -> list[Any]:
    """The arguments broadcast against each other, but for scalars."""
    return list(broadcasted(fun_name, *map(asarray, args)))


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """The arguments in one dtype, and of one shape but for scalars."""
    return [asarray(x) for x in promoted(fun_name, *args)]


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """`promote_args`, with floats for integers and booleans."""
    return [asarray(x) for x in promoted_inexact(fun_name, *args)]


def check_arraylike(fun_name: str, *args: Any, **options: Any) -> None:
    """TypeError for an argument that is no array or number."""
    check_operands(fun_name, args)


def ensure_arraylike(fun_name: str, *args: Any) -> Any:
    """The arguments as arrays; one of them alone is not in a tuple."""
    arrays = tuple(asarray(x) for x in check_operands(fun_name, args))
    return arrays[0] if len(arrays) == 1 else arrays
