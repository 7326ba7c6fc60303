"""What ten trips through the library cross: calls of its Python functions, distinct functions, distinct files.

`python -m tests.support.trips` prints a table, with `--files TRIP` the files of one trip, with `--json` the counts.

A trip is one call of a user's, such as the first call of a jitted function. Its files are those that a reader who
follows the call has to open. Run it in a process of its own: what earlier calls left in caches shortens a trip.
"""
from __future__ import annotations

import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

import xlamini
from xlamini import lax, numpy as jnp

ROOT = os.path.dirname(xlamini.__file__) + os.sep


class Trip(NamedTuple):
    """What a trip crosses."""

    calls: int
    functions: int
    files: list[str]


def measured(trip: Callable[[], Any]) -> Trip:
    """Run a trip and count the Python functions of the library that it calls."""
    counts: Counter[CodeType] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    gc.disable()  # its callbacks are no part of the trip
    sys.setprofile(profile)
    try:
        trip()
    finally:
        sys.setprofile(None)
        gc.enable()
    own = {code: n for code, n in counts.items() if code.co_filename.startswith(ROOT)}
    files = sorted({code.co_filename.removeprefix(ROOT) for code in own})
    return Trip(sum(own.values()), len(own), files)


def after(warm_up: int, trip: Callable[[], Any]) -> Trip:
    """Measure a trip that has been made some times before."""
    for _ in range(warm_up):
        trip()
    return measured(trip)


def everything() -> dict[str, Trip]:
    """All trips, in the order that makes each of them as fresh as it is to a user."""
    x, w = xlamini.device_put(np.ones((4, 8), np.float32)), xlamini.device_put(np.ones((8, 3), np.float32))
    y = xlamini.device_put(np.ones(5, np.float32))
    jnp.sum, jnp.tanh, jnp.sin, jnp.sinh, lax.scan, lax.cosh  # noqa: B018 - a face imports a name when it is first used
    xlamini.jit(lambda x: x + 1)(y)  # starts the compiler and imports what waits for the first program

    def f(x: Any, w: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w))

    def loop(c: Any, xs: Any) -> Any:
        return jnp.sum(lax.scan(lambda c, x: (jnp.sin(c) * x, c + x), c, xs)[1])

    jitted, gradient, mapped = xlamini.jit(f), xlamini.grad(f), xlamini.vmap(lambda x: f(x, w))
    trace = xlamini.make_jaxpr(xlamini.grad(loop))
    one_op = xlamini.jit(lax.cosh).trace(y)
    return {
        "jit, first call": measured(lambda: jitted(x, w)),
        "jit, second call": measured(lambda: jitted(x, w)),
        "eager grad, first call": measured(lambda: gradient(x, w)),
        "eager grad, third call": after(1, lambda: gradient(x, w)),
        "eager vmap, third call": after(2, lambda: mapped(x)),
        "make_jaxpr(grad(scan))": measured(lambda: trace(1.0, y)),
        "device_put(ndarray)": measured(lambda: xlamini.device_put(np.ones(3, np.float32))),
        "jnp.sinh, first call": measured(lambda: jnp.sinh(y)),
        "jnp.sinh, second call": measured(lambda: jnp.sinh(y)),
        "x + 1.0, second call": after(1, lambda: y + 1.0),
        "lower one operation": measured(one_op.lower),
    }


def main(argv: list[str]) -> None:
    """Print what the trips cross."""
    trips = everything()
    if argv[:1] == ["--json"]:
        print(json.dumps({name: trip._asdict() for name, trip in trips.items()}))
    elif argv[:1] == ["--files"]:
        print("\n".join(trips[" ".join(argv[1:])].files))
    else:
        print("\n".join(f"{name:24}{t.calls:6}{t.functions:6}{len(t.files):6}" for name, t in trips.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
