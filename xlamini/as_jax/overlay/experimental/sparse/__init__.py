"""`jax.experimental.sparse`: xlamini's, and JAX's primitives of COO and CSR matrices, which are compositions here."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.primitive import Primitive
from xlamini.experimental import sparse

__getattr__: Final = fall_through(__name__)


def _bound_by(name: str, bind: Callable[..., Any]) -> Primitive:
    """A primitive whose `bind` gives the equations of a function; no program has an equation of its own."""
    primitive = Primitive(name)
    primitive.def_custom_bind(bind)
    return primitive


def _coo(parts: Any, spinfo: Any) -> sparse.COO:
    return sparse.COO(parts, shape=spinfo.shape)


def _csr(parts: Any, shape: Any) -> sparse.CSR:
    return sparse.CSR(parts, shape=shape)


coo_todense_p: Final = _bound_by("coo_todense", lambda *parts, spinfo: sparse.coo_todense(_coo(parts, spinfo)))
csr_todense_p: Final = _bound_by("csr_todense", lambda *parts, shape: sparse.csr_todense(_csr(parts, shape)))
coo_matvec_p: Final = _bound_by(
    "coo_matvec", lambda *parts, spinfo, transpose: sparse.coo_matvec(_coo(parts[:3], spinfo), parts[3], transpose)
)
coo_matmat_p: Final = _bound_by(
    "coo_matmat",
    lambda *parts, spinfo, transpose: sparse.coo_matmat(_coo(parts[:3], spinfo), parts[3], transpose=transpose),
)
csr_matvec_p: Final = _bound_by(
    "csr_matvec", lambda *parts, shape, transpose: sparse.csr_matvec(_csr(parts[:3], shape), parts[3], transpose)
)
csr_matmat_p: Final = _bound_by(
    "csr_matmat",
    lambda *parts, shape, transpose: sparse.csr_matmat(_csr(parts[:3], shape), parts[3], transpose=transpose),
)
