"""Array members of key arrays: indexing, `.at`, iteration, equality, methods that move elements."""
from __future__ import annotations

from typing import Any

from xlamini.numpy.array_methods import Methods, give_methods
from xlamini.numpy.indexing.at import At
from xlamini.numpy.indexing.operators import getitem, iterate
from xlamini.primitives import equal
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.staging import composite


@composite()
def same_keys(x: Any, y: Any) -> Any:
    """Test elementwise whether keys are equal: whether all their words are."""
    return equal(x, y)


def _eq(self: PRNGKeyArray, other: object) -> Any:
    return same_keys(self, other) if getattr(other, "dtype", None) == self.dtype else NotImplemented


def _ne(self: PRNGKeyArray, other: object) -> Any:
    same = _eq(self, other)
    return same if same is NotImplemented else ~same


_MEMBERS: dict[str, Any] = {
    "__getitem__": getitem,
    "__iter__": iterate,
    "__eq__": _eq,
    "__ne__": _ne,
    "at": property(At),
    **{name: vars(Methods)[name] for name in ("reshape", "transpose", "T", "mT")},
}

for _name, _member in _MEMBERS.items():
    setattr(PRNGKeyArray, _name, _member)
give_methods(PRNGKeyArray, ("flatten", "ravel", "repeat", "squeeze", "swapaxes", "take"))
