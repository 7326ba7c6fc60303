"""Errors and warnings about operations that would be inefficient for sparse arrays."""
from __future__ import annotations

import warnings

from xlamini.core import user_stacklevel


class SparseEfficiencyError(ValueError):
    """An operation would store far more elements than the array has.

    >>> from xlamini.experimental.sparse import eye
    >>> eye(3).update_layout(n_batch=1)
    Traceback (most recent call last):
    xlamini.experimental.sparse.efficiency.SparseEfficiencyError: update_layout: increasing n_batch from 0 to 1 ...
    """


class SparseEfficiencyWarning(UserWarning):
    """An operation stores far more elements than the array has.

    >>> from xlamini.experimental.sparse import eye
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     print(eye(3).update_layout(n_batch=1, on_inefficient="warn"))
    BCOO(float32[3, 3], nse=3, n_batch=1)
    >>> print(seen[0].message)
    update_layout: increasing n_batch from 0 to 1 stores 3 times the elements of BCOO(float32[3, 3], nse=3); pass ...
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """For programs that filter JAX's warning of this name; nothing here uses cuSPARSE.

    >>> issubclass(CuSparseEfficiencyWarning, SparseEfficiencyWarning)  # a filter for the base takes it too
    True
    """


def object_to(text: str, on_inefficient: str | None) -> None:
    """Raise a SparseEfficiencyError, or with "warn" issue a warning, or with None do nothing."""
    if on_inefficient == "error":
        raise SparseEfficiencyError(f"{text}; pass on_inefficient='warn' or None if that is meant")
    if on_inefficient == "warn":
        warnings.warn(f"{text}; pass on_inefficient=None if that is meant", SparseEfficiencyWarning, user_stacklevel())
