"""All sweeps, and their largest errors."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import xlamini
import xlamini.numpy as jnp
from tests.sweeps.activations import ACTIVATIONS
from tests.sweeps.complex import COMPLEX
from tests.sweeps.elementary import ELEMENTARY
from tests.sweeps.special_functions import SPECIAL
from tests.sweeps.sweep import Sweep, errors, wide

SWEEPS = [*ELEMENTARY, *ACTIVATIONS, *SPECIAL, *COMPLEX]
BUDGETS = Path(__file__).with_name("budgets.json")


class Worst(NamedTuple):
    """The largest error, in ulp, and where it is."""

    ulp: float
    at: str


def budgets() -> dict[str, Any]:
    """For each sweep and dtype, how many ulp its values and derivatives may be off."""
    return json.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}


def values(sweep: Sweep, dtype: str) -> Worst:
    """The worst value in an eager call and under jit and vmap."""
    with xlamini.enable_x64(True):
        return max(_values(sweep, dtype), key=lambda worst: worst.ulp)


def _values(sweep: Sweep, dtype: str) -> Iterator[Worst]:
    for operands in sweep.inputs(dtype):
        exact, arrays = sweep.reference(*operands), [jnp.asarray(x) for x in operands]
        yield _worst(sweep, sweep.function(*arrays), exact, operands)
        if sweep.slope is not None:  # elementwise
            yield _worst(sweep, xlamini.jit(xlamini.vmap(sweep.function))(*arrays), exact, operands)


def slopes(sweep: Sweep, dtype: str) -> Worst | None:
    """The worst derivative at numbers that are finite and not 0; None if the sweep has none."""
    if sweep.slope is None:
        return None
    holomorphic = dtype.startswith("complex")
    with xlamini.enable_x64(True):
        ((x,),) = sweep.inputs(dtype)
        x = x[np.isfinite(wide(x)) & (wide(x) != 0)]
        slope = xlamini.jit(xlamini.vmap(xlamini.grad(sweep.function, holomorphic=holomorphic)))
        return _worst(sweep, slope(jnp.asarray(x)), sweep.slope(x), [x])


def _worst(sweep: Sweep, found: Any, exact: Any, operands: Any) -> Worst:
    off = errors(np.asarray(found), exact, by_parts=sweep.by_parts)
    worst = int(np.argmax(off)) if off.size else 0
    at = ", ".join(f"{x.ravel()[worst]:.6g}" if x.shape == off.shape else "the array" for x in map(wide, operands))
    return Worst(float(off.ravel()[worst]), at)
