"""`Structure`: a program as a key that is equal for programs that run alike."""
from __future__ import annotations

import numpy as np

import xlamini
from xlamini import numpy as jnp
from xlamini.core.caching.structure import Structure, executable_key

X = np.arange(3, dtype=np.float32)


def structure_of(f: object, x: object) -> Structure:
    return Structure(xlamini.make_jaxpr(f)(x).jaxpr)


def test_structures_are_equal_for_programs_that_run_alike() -> None:
    same, again = structure_of(jnp.sin, X), structure_of(lambda y: jnp.sin(y), X)
    other, typed = structure_of(jnp.cos, X), structure_of(jnp.sin, X.astype(np.float16))
    assert same.jaxpr is not again.jaxpr and same == again and hash(same) == hash(again)
    assert len({same, again, other, typed}) == 3
    assert same != executable_key(same.jaxpr)


def test_one_jaxpr_is_recognised_without_its_equations() -> None:
    jaxpr = structure_of(lambda x: jnp.sin(x) * 1123, X).jaxpr
    assert Structure(jaxpr) == Structure(jaxpr) and executable_key not in jaxpr.memo
