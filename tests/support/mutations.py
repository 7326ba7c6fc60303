"""Mutations of saved files under a right checksum: what somebody could write who knows the format.

`python -m tests.support.mutations COUNT [SEED]` tries so many of them on compiled and on exported functions. Each must
give a LoadError when it is loaded, a ValueError or TypeError when it is called, or a result; the process must live.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xlamini
from xlamini import P, export, numpy as jnp
from xlamini.errors import JaxRuntimeError, LoadError
from xlamini.runtime.files.file_format import Kind
from xlamini.sharding import AxisType, Mesh, NamedSharding
from xlamini.staging.aot import compiled_file
from xlamini.transforms.export import exported_file

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, -(2**70), 0.5, 1e300, float("nan"), "", "x", "float32", "int32"),
    *([], [[]], [0], [True], ["a"], {}, {"tuple": []}, {"list": ["*"]}, ["float32", [2], False]),
    [["float64", [], True]],
]
"""Values that replace a part of a header."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a header."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


def with_part(header: Any, path: tuple[Any, ...], choose: random.Random) -> Any:
    """The header with one part replaced, removed or repeated."""
    changed = copy.deepcopy(header)
    at = changed
    for key in path[:-1]:
        at = at[key]
    way = choose.randrange(6)
    if way == 0:
        del at[path[-1]]
    elif way == 1 and isinstance(at, list):
        at.append(copy.deepcopy(at[path[-1]]))
    else:
        at[path[-1]] = copy.deepcopy(choose.choice(ODD))
    return changed


def mutated_header(kind: Kind, blob: bytes, choose: random.Random) -> bytes:
    """The file with one or two parts of the header changed."""
    header, body = kind.unpacked(blob)
    for _ in range(choose.randint(1, 2)):
        header = with_part(header, choose.choice(list(places(header))), choose)
    return kind.packed(header, body)


def mutated_module(blob: bytes, choose: random.Random) -> bytes:
    """The file of an exported function with some bytes of the StableHLO changed."""
    kind = exported_file.kind_of(blob)
    header, body = kind.unpacked(blob)
    code = bytearray(body)
    for _ in range(choose.randint(1, 4)):
        code[choose.randrange(len(code))] = choose.randrange(256)
    return kind.packed(header, bytes(code))


def layer(x: Any, p: Any) -> Any:
    return {"y": jnp.tanh(x @ p["w"]) + p["b"], "n": [jnp.sum(x)]}


def sharded(mesh: Mesh) -> bytes:
    """The file of a function that is sharded over a mesh."""
    there = NamedSharding(mesh, P("x"))
    function = xlamini.jit(layer, in_shardings=(there, None), out_shardings={"y": there, "n": None})
    return bytes(export.export(function)(*ARGUMENTS).serialize(vjp_order=1))


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
ARGUMENTS = (X, {"w": np.ones((3, 2), np.float32), "b": np.float32(0.5)})
TYPED = (LoadError, ValueError, TypeError, JaxRuntimeError)
"""What a call of a file that could be loaded may raise: its arguments are not those that the header describes."""


def tried(load: Callable[[], Callable[..., Any]]) -> str:
    """What became of a file: refused, refused when it was called, or a result. Other errors are raised."""
    try:
        function = load()
    except LoadError:
        return "refused"
    try:
        out = function(*ARGUMENTS)
    except TYPED:
        return "refused when called"
    [np.asarray(x) for x in xlamini.tree.leaves(out)]
    return "a result"


def headers(count: int, seed: int) -> Counter[str]:
    """Mutated headers of a compiled and an exported function, in turn."""
    choose, function = random.Random(seed), xlamini.jit(layer)
    compiled = function.lower(*ARGUMENTS).compile().serialize()
    exported = bytes(export.export(function)(*ARGUMENTS).serialize(vjp_order=1))
    mesh = xlamini.make_mesh((2,), ("x",), AxisType.Auto, devices=xlamini.devices()[:2])
    over_mesh, found = sharded(mesh), Counter[str]()
    for number in range(count):
        if number % 3 == 0:
            blob = mutated_header(compiled_file.FILE, compiled, choose)
            found[tried(lambda blob=blob: xlamini.load(blob))] += 1
        elif number % 3 == 1:
            blob = mutated_header(exported_file.FILE, exported, choose)
            found[tried(lambda blob=blob: export.deserialize(blob).call)] += 1
        else:
            blob = mutated_header(exported_file.SHARDED_FILE, over_mesh, choose)
            with xlamini.set_mesh(mesh):
                found[tried(lambda blob=blob: export.deserialize(blob).call)] += 1
    return found


def modules(count: int, seed: int) -> Counter[str]:
    """Mutated StableHLO of an exported function, each read by a process of its own; every other one is sharded."""
    choose, found = random.Random(seed), Counter[str]()
    blob = bytes(export.export(xlamini.jit(layer))(*ARGUMENTS).serialize())
    mesh = xlamini.make_mesh((2,), ("x",), AxisType.Auto, devices=xlamini.devices()[:2])
    over_mesh = sharded(mesh)
    for number in range(count):
        changed = mutated_module(over_mesh if number % 2 else blob, choose)
        with xlamini.set_mesh(mesh if number % 2 else None):
            found[tried(lambda changed=changed: export.deserialize(changed).call)] += 1
    return found


if __name__ == "__main__":
    wanted, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    report = {"headers": headers(wanted, first), "modules": modules(wanted // 20, first)}
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
