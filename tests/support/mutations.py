"""Mutations of saved files under a right checksum: what somebody could write who knows the format.

`python -m tests.support.mutations COUNT [SEED]` tries so many of them on compiled and on exported functions. Each must
give a LoadError when it is loaded, a typed error when it is called, or a result; the process must live. A header that
is accepted must give the right numbers, too. They run in a child process, which tells of each mutation; where it dies,
the next child goes on behind the mutation that killed it.
"""

from __future__ import annotations

import copy
import faulthandler
import functools
import json
import random
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import xlamini
from xlamini import P, export, lax, numpy as jnp, tree
from xlamini.errors import JaxRuntimeError, LoadError
from xlamini.runtime.files.file_format import Kind, split_body
from xlamini.sharding import AxisType, NamedSharding
from xlamini.staging.aot import compiled_file
from xlamini.transforms.export import exported_file

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, -(2**70), 0.5, 1e300, float("nan"), "", "x", "float32", "int32"),
    *([], [[]], [0], [True], ["a"], {}, {"tuple": []}, {"list": ["*"]}, ["float32", [2], False]),
    [["float64", [], True]],
]
"""Values that replace a part of a header."""
SECONDS = 120
"""A mutation that takes longer hangs."""
MODULES, HEADERS = "modules", "headers"
CHILD = [sys.executable, "-m", "tests.support.mutations", "--here"]


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
        at[path[-1]] = copy.deepcopy(choose.choice([*ODD, *header.values()]))
    return changed


def mutated_header(kind: Kind, blob: bytes, choose: random.Random) -> bytes:
    """The file with one or two parts of the header changed."""
    header, body = kind.unpacked(blob)
    for _ in range(choose.randint(1, 2)):
        paths = list(places(header))
        header = with_part(header, choose.choice(paths), choose) if paths else header
    return kind.packed(header, body)


def mutated_module(blob: bytes, choose: random.Random) -> bytes:
    """The file of an exported function with some bytes of the StableHLO changed, of the pullback's perhaps."""
    kind = exported_file.kind_of(blob)
    header, body = kind.unpacked(blob)
    code, *pullback = split_body(body, header["sizes"])
    if pullback and choose.random() < 0.3:
        pullback = [mutated_module(pullback[0], choose)]
    else:
        code = _with_bytes(bytearray(code), choose)
    parts = [code, *pullback]
    return kind.packed({**header, "sizes": [len(part) for part in parts]}, b"".join(parts))


def _with_bytes(code: bytearray, choose: random.Random) -> bytes:
    way, at = choose.randrange(8), choose.randrange(len(code))
    if way == 0:
        return bytes(code[:at])
    if way == 1:
        return bytes(code[:at] + code[choose.randrange(len(code)) :])
    for _ in range(choose.randint(1, 4)):
        at = choose.randrange(len(code))
        code[at] = choose.choice((choose.randrange(256), code[at] ^ 1 << choose.randrange(8), (code[at] + 1) % 256))
    return bytes(code)


# --- the files


class File(NamedTuple):
    """A right file: its kind, how it is loaded and called, and what it gives."""

    kind: Kind
    blob: bytes
    load: Callable[[bytes], Callable[..., Any]]
    arguments: tuple[Any, ...]
    wanted: list[np.ndarray]


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
PARAMS = {"w": np.ones((3, 2), np.float32), "b": np.float32(0.5)}


def layer(x: Any, p: Any) -> Any:
    return {"y": jnp.tanh(x @ p["w"]) + p["b"], "n": [jnp.sum(x)]}


def loops(x: Any, n: Any) -> Any:
    total, rows = lax.scan(lambda c, row: (c + row, jnp.sort(c * row)), x[0], x)
    last = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, total))[1]
    return lax.cond(n > 2, jnp.sin, jnp.cos, last), rows, jnp.argmax(x, 0), x[:, ::-1].astype(jnp.bfloat16)


def solved(x: Any, key: Any) -> Any:
    matrix = x.T @ x + 3 * jnp.eye(3)
    noise = xlamini.random.uniform(key, (3,))
    return jnp.linalg.cholesky(matrix), jnp.linalg.solve(matrix, noise), x.at[0, 1].add(2.0), jnp.fft.rfft(x).real


def gradient(load: Any) -> Callable[..., Any]:
    """The gradient of an exported function with respect to what it is called with."""

    def total(arguments: Any) -> Any:
        return sum(jnp.sum(x) for x in tree.leaves(load.call(*arguments)))

    return lambda *arguments: xlamini.grad(total)(arguments)


@functools.cache
def files() -> list[File]:
    """One right file of each sort."""
    key = xlamini.random.key(0)
    compiled = (layer, (X, PARAMS)), (loops, (X, np.int32(4))), (solved, (X, key))
    plain = (*compiled, (lambda x: (jnp.arange(3.0) @ x.T, x), (X,)))
    found = [_compiled(*c) for c in compiled] + [_exported(*c) for c in plain]
    call = lambda blob: gradient(export.deserialize(blob))
    pullback = _exported(layer, (X, PARAMS), vjp_order=1)
    several = _exported(layer, (X, PARAMS), platforms=("tpu", "cpu"))
    slope = call(pullback.blob)(X, PARAMS)
    return [*found, several, _sharded(), pullback._replace(load=call, wanted=list(map(np.asarray, tree.leaves(slope))))]


def _compiled(fun: Any, arguments: Any) -> File:
    blob = xlamini.jit(fun).lower(*arguments).compile().serialize()
    return File(compiled_file.FILE, blob, xlamini.load, arguments, _leaves(xlamini.jit(fun)(*arguments)))


def _sharded() -> File:
    """The file of a function that is sharded over a mesh, which is that of its calls too."""
    mesh = xlamini.make_mesh((2,), ("x",), AxisType.Auto, devices=xlamini.devices()[:2])
    there = NamedSharding(mesh, P("x"))
    function = xlamini.jit(layer, in_shardings=(there, None), out_shardings={"y": there, "n": None})
    made = bytes(export.export(function)(X, PARAMS).serialize(vjp_order=1))

    def load(blob: bytes) -> Callable[..., Any]:
        found = export.deserialize(blob)

        def call(*arguments: Any) -> Any:
            with xlamini.set_mesh(mesh):
                return found.call(*arguments)

        return call

    return File(exported_file.kind_of(made), made, load, (X, PARAMS), _leaves(xlamini.jit(layer)(X, PARAMS)))


def _exported(fun: Any, arguments: Any, vjp_order: int = 0, **options: Any) -> File:
    blob = bytes(export.export(xlamini.jit(fun), **options)(*arguments).serialize(vjp_order=vjp_order))
    load = lambda blob: export.deserialize(blob).call
    return File(exported_file.kind_of(blob), blob, load, arguments, _leaves(xlamini.jit(fun)(*arguments)))


def _leaves(out: Any) -> list[np.ndarray]:
    return [np.asarray(x, np.float32) for x in tree.leaves(out)]


# --- trying them

TYPED = (LoadError, ValueError, TypeError, JaxRuntimeError)
"""What a call of a file that could be loaded may raise: its arguments are not those that the header describes."""


def tried(file: File, blob: bytes, is_right: bool) -> str:
    """What became of a file: refused, refused when it was called, or a result. Other errors are raised.

    Where it must be right, each array of the result is one of the right ones; their places are what the file says.
    """
    try:
        function = file.load(blob)
    except LoadError:
        return "refused"
    try:
        out = function(*file.arguments)
    except TYPED:
        return "refused when called"
    found = _leaves(out)
    if is_right:
        wrong = [x for x in found if not any(_is_near(x, y) for y in file.wanted)]
        assert not wrong, f"wrong numbers: {wrong}"
    return "a result"


def _is_near(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and np.allclose(x, y, 1e-2, 1e-2, equal_nan=True)


def mutation(what: str, seed: int, number: int) -> tuple[File, bytes]:
    """The mutation of this number, and the file that it was made from."""
    choose = random.Random(f"{what} {seed} {number}")
    if what == HEADERS:
        file = choose.choice(files())
        return file, mutated_header(file.kind, file.blob, choose)
    file = choose.choice([f for f in files() if f.kind is not compiled_file.FILE])
    return file, mutated_module(file.blob, choose)


def outcome(what: str, seed: int, number: int) -> str:
    """What became of one mutation; it begins with WRONG if it must not."""
    try:
        return tried(*mutation(what, seed, number), what == HEADERS)
    except Exception as error:
        return f"WRONG {type(error).__name__}: {error}"


def outcomes(what: str, seed: int, numbers: range) -> Iterator[tuple[int, str]]:
    """What became of mutations, in child processes: for one that dies of a mutation, another goes on behind it."""
    first = numbers.start
    while first < numbers.stop:
        child = [*CHILD, what, str(seed), str(first), str(numbers.stop)]
        with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                yield first, json.loads(line)
                first += 1
        if first < numbers.stop:
            yield first, f"WRONG: the process ended with {running.returncode}"
            first += 1


def counted(what: str, seed: int, count: int) -> Counter[str]:
    """How many mutations came to what; those that are wrong are named with their numbers."""
    found: Counter[str] = Counter()
    for number, text in outcomes(what, seed, range(count)):
        wrong = text.startswith("WRONG")
        found[f"{text} (at {what} {seed} {number})" if wrong else text] += 1
        if wrong:
            sys.stderr.write(f"{what} {seed} {number}: {text}\n")
    return found


def main() -> None:
    """Try mutations, here or in children."""
    if sys.argv[1] != "--here":
        count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
        report = {what: counted(what, seed, count // 2) for what in (HEADERS, MODULES)}
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
        return
    warnings.simplefilter("ignore")
    xlamini.config.update("num_cpu_devices", 8)
    what, seed, *ends = sys.argv[2:]
    for number in range(*map(int, ends)):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        sys.stdout.write(json.dumps(outcome(what, int(seed), number)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
