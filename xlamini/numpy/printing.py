"""Arrays as text, and how they are printed: Arrays follow NumPy's options."""
from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from xlamini.numpy.arguments import as_operand


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Say how arrays are printed, NumPy's among them; the options are those of `numpy.set_printoptions`.

    >>> before = get_printoptions()
    >>> set_printoptions(precision=2)
    >>> jnp.array([1.23456])
    Array([1.23], dtype=float32)
    >>> set_printoptions(**before)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> dict[str, Any]:
    """The options for printing arrays.

    >>> get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """A context in which arrays are printed with these options.

    >>> with printoptions(precision=2):
    ...     print(jnp.array([1.2345]))
    [1.23]
    """
    return np.printoptions(*args, **kwargs)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The `repr` of an array, with print options for this call.

    >>> array_repr(jnp.array([1.2345]), precision=2)
    'Array([1.23], dtype=float32)'
    """
    with _options(max_line_width, precision, suppress_small):
        return repr(as_operand("array_repr", arr))


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The `str` of an array, with print options for this call.

    >>> array_str(jnp.array([1.2345]), precision=2)
    '[1.23]'
    """
    with _options(max_line_width, precision, suppress_small):
        return str(as_operand("array_str", a))


def _options(linewidth: int | None, precision: int | None, suppress: bool | None) -> AbstractContextManager[Any]:
    given = {"linewidth": linewidth, "precision": precision, "suppress": suppress}
    return np.printoptions(**{name: value for name, value in given.items() if value is not None})
