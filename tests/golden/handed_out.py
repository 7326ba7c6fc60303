"""Calls whose programs must have JAX's primitives and params, written for any library that has JAX's names.

A call, a line of handed_out_calls.txt, is an expression of the arguments below; its function takes those that it names.
`grad` and `vmap` stand for the derivative of a call's sum and for the call on one more dimension.
"""
from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ARGUMENTS: dict[str, Any] = {
    "x": np.array([0.3, 0.5, 0.9], np.float32),
    "y": np.array([0.2, 0.7, 0.4], np.float32),
    "s": np.float32(0.5),
    "m": np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]], np.float32),
    "w": np.array([[0.1, 0.2, 0.3], [0.6, 0.5, 0.4]], np.float32),
    "t": np.linspace(0.1, 1.2, 24, dtype=np.float32).reshape(1, 4, 3, 2),
    "i": np.array([2, 0, 1], np.int32),
    "j": np.array([3, 5, 7], np.int32),
    "b": np.array([True, False, True]),
    "z": np.array([1 + 1j, 2.0, -1j], np.complex64),
    "k": np.array([0, 42], np.uint32),
}
MODULES = {
    **{"jnp": "numpy", "lax": "lax", "nn": "nn", "random": "random", "linalg": "numpy.linalg", "fft": "numpy.fft"},
    **{"lax_linalg": "lax.linalg", "special": "scipy.special", "scipy_linalg": "scipy.linalg"},
}


def calls() -> list[str]:
    """Each call by name: an expression, after `grad ` or `vmap ` where it is transformed."""
    return Path(__file__).with_name("handed_out_calls.txt").read_text().splitlines()


def call(jax: ModuleType, name: str) -> tuple[Callable[..., Any], list[Any]]:
    """The function of a call, and its arguments."""
    how, text = name.split(" ", 1) if name.startswith(("grad ", "vmap ")) else ("", name)
    known: dict[str, Any] = {"jax": jax, "np": np}
    importlib.import_module("jax.experimental")
    known.update({short: importlib.import_module(f"jax.{path}") for short, path in MODULES.items()})
    taken = [argument for argument in ARGUMENTS if re.search(rf"(?<![\w.']){argument}\b(?!')", text)]
    fun, args = eval(f"lambda {', '.join(taken)}: {text}", known), [ARGUMENTS[argument] for argument in taken]
    if how == "vmap":
        return jax.vmap(fun), [np.stack([a, a]) for a in args]
    if how == "grad":
        numbers = [n for n, a in enumerate(args) if a.dtype.kind == "f"]
        return jax.grad(lambda *a: fun(*a).sum(), argnums=tuple(numbers)), args
    return fun, args


def described(jaxpr: Any, core: ModuleType) -> dict[str, list[str]]:
    """For each primitive of a program, and of the programs inside, the sorted keys of its params; names of `jit`s."""
    found: dict[str, set[str]] = {}
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        found.setdefault(name, set()).update(map(str, eqn.params))
        if name == "jit":
            found.setdefault("names", set()).add(eqn.params["name"])
        for inner in programs_in(list(eqn.params.values()), core):
            for key, values in described(inner, core).items():
                found.setdefault(key, set()).update(values)
    return {key: sorted(values) for key, values in found.items()}


def programs_in(values: Any, core: ModuleType) -> Iterator[Any]:
    """The jaxprs among params and in tuples of them."""
    for value in values:
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            yield from programs_in(value, core)
