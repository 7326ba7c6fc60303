"""Public functions called with odd arguments: each call gives a result or a typed error, and the process lives.

`python -m tests.support.odd_arguments COUNT [SEED] [FACE ...]` tries so many calls of each face in child processes, and
prints what must not be. A call has a number, from which it can be made again: `--here FACE SEED FIRST LAST` runs some.

The arguments of a call are ordinary ones, chosen by the names of the parameters, of which one or two are replaced by an
odd value: a number that no size can be, a wrong type, a container without an end, an array of a small dtype or of many
dimensions, an object whose methods raise.
"""

from __future__ import annotations

import collections
import enum
import faulthandler
import functools
import importlib
import inspect
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xlamini
from tests.support.odd_values import MATRIX, MESH, Boom, odd, ordinary
from tests.support.paths import ROOT
from xlamini import lax, numpy as jnp
from xlamini.errors import JaxRuntimeError
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec

SECONDS = 60
"""A call that takes more CPU time hangs, or one that takes ten times as long while it waits."""
FACES = """
xlamini xlamini.numpy xlamini.numpy.linalg xlamini.numpy.fft xlamini.lax xlamini.lax.linalg xlamini.random xlamini.nn
xlamini.nn.initializers xlamini.scipy.special xlamini.scipy.linalg xlamini.scipy.signal xlamini.scipy.ndimage
xlamini.scipy.fft xlamini.scipy.integrate xlamini.scipy.interpolate xlamini.scipy.optimize xlamini.scipy.stats
xlamini.scipy.stats.norm xlamini.scipy.stats.gamma xlamini.scipy.stats.binom xlamini.scipy.cluster.vq
xlamini.scipy.sparse.linalg xlamini.scipy.spatial.transform xlamini.image xlamini.tree xlamini.tree_util
xlamini.export xlamini.ffi xlamini.experimental.sparse xlamini.experimental.jet xlamini.experimental.ode
xlamini.experimental.layout xlamini.sharding xlamini.ops xlamini.dlpack xlamini.flatten_util xlamini.custom_batching
xlamini.custom_derivatives xlamini.ad_checkpoint xlamini.api_util xlamini.ref xlamini.debug
methods places transformations
""".split()
"""The modules, and the lists of calls below."""
LEFT_OUT = re.compile(
    r"print|breakpoint|start_|stop_|clear_|config$|distributed|register|install|initialize|save|tofile|dump|"
    r"live_arrays|effects_barrier|include_dir|set_printoptions|server|visualize|local_device|_count$|Tracer|ndarray$|^Array$"
)
"""Functions that change the process or its files, or have no arguments."""


# --- calls that are no function of a module

_METHODS = """
astype reshape transpose sum mean max min prod std var argmax argsort sort cumsum clip dot take repeat round squeeze
swapaxes trace view item tolist __getitem__ __add__ __matmul__ __pow__ __lshift__ __floordiv__ __divmod__ __setitem__
__eq__ __lt__ __and__ __round__ __format__ __array__ __dlpack__ compress choose diagonal ptp searchsorted flatten ravel
nonzero conj byteswap copy to_device
""".split()
METHODS = {name: functools.partial(lambda name, *a: getattr(MATRIX, name)(*a), name) for name in _METHODS}
_WAYS = "set add mul min max power divide apply get subtract".split()
_place: Callable[..., Any] = lambda name, index, y, mode=None, fill_value=None, indices_are_sorted=False: getattr(
    MATRIX.at[index], name)(y, mode=mode, indices_are_sorted=indices_are_sorted)
PLACES = {name: functools.partial(_place, name) for name in _WAYS[:7]}
PLACES["get"] = lambda index, mode=None, fill_value=None: MATRIX.at[index].get(mode=mode, fill_value=fill_value)
PLACES["index"] = lambda index, second: MATRIX[index, second]
PLACES["ref"] = lambda index, y: xlamini.new_ref(MATRIX).__setitem__(index, y)
TRANSFORMATIONS: dict[str, Callable[..., Any]] = {
    "jit": lambda fun, x, **o: xlamini.jit(fun, **o)(x), "grad": lambda fun, x, **o: xlamini.grad(fun, **o)(x),
    "vmap": lambda fun, x, **o: xlamini.vmap(fun, **o)(x), "hessian": lambda fun, x: xlamini.hessian(fun)(x),
    "value_and_grad": lambda fun, x, **o: xlamini.value_and_grad(fun, **o)(x),
    "jacfwd": lambda fun, x, **o: xlamini.jacfwd(fun, **o)(x), "jacrev": lambda fun, x: xlamini.jacrev(fun)(x),
    "linearize": lambda fun, x, y: xlamini.linearize(fun, x)[1](y), "vjp": lambda fun, x, y: xlamini.vjp(fun, x)[1](y),
    "checkpoint": lambda fun, x, **o: xlamini.checkpoint(fun, **o)(x),
    "lower": lambda fun, x: xlamini.jit(fun).lower(x),
    "custom_jvp": lambda fun, rule, x: _with_rule(xlamini.custom_jvp(fun), x, rule),
    "custom_vjp": lambda fun, fwd, bwd, x: _with_rule(xlamini.custom_vjp(fun), x, fwd, bwd),
    "scan": lambda fun, init_val, xs, **o: lax.scan(fun, init_val, xs, **o),
    "export": lambda fun, x: xlamini.export.export(xlamini.jit(fun))(x).serialize(),
    "shard_map": lambda fun, x, in_specs, out_specs: xlamini.shard_map(
        fun, mesh=MESH, in_specs=in_specs, out_specs=out_specs)(x),
    "compiled": lambda fun, x, y: xlamini.jit(fun).lower(x).compile()(y), "eval_shape": xlamini.eval_shape,
    "transpose": lambda fun, x, y: xlamini.linear_transpose(fun, x)(y),
    "make_jaxpr": lambda f, x: xlamini.make_jaxpr(f)(x),
    "pure_callback": lambda fun, x, y: xlamini.pure_callback(fun, x, y),
    "device_put": lambda x, y: xlamini.device_put(x, y),
    # jaxlib reads the mesh before it asks Python, and raises an AttributeError for what is none
    "NamedSharding": lambda y: NamedSharding(MESH, y), "Mesh": lambda devices, y: Mesh(devices, y),
    "constrained": lambda x, y: xlamini.jit(lambda x: lax.with_sharding_constraint(x, y))(x),
    "in_shardings": lambda x, y: xlamini.jit(jnp.sin, in_shardings=y)(x), "spec": lambda x, y: PartitionSpec(x, y),
}  # fmt: skip
LISTS = {"methods": METHODS, "places": PLACES, "transformations": TRANSFORMATIONS}


def _with_rule(ruled: Any, x: Any, *rules: Any) -> Any:
    getattr(ruled, "defjvp" if len(rules) == 1 else "defvjp")(*rules)
    return xlamini.value_and_grad(ruled)(x)


@functools.cache
def functions(face: str) -> dict[str, Callable[..., Any]]:
    """The functions of a face."""
    if face in LISTS:
        return LISTS[face]
    module = importlib.import_module(face)
    names = [n for n in sorted(dir(module)) if not n.startswith("_") and not LEFT_OUT.search(n)]
    found = {n: getattr(module, n) for n in names}
    return {n: f for n, f in found.items() if callable(f) and not _is_left_out(f) and _is_of(f, module)}


def _is_left_out(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, BaseException | enum.Enum)


def _is_of(x: Any, module: Any) -> bool:
    """Whether a name is the module's own, where it has neither a stub nor only public names."""
    return not module.__name__.endswith(("jet", "ode", "initializers")) or x.__module__ == module.__name__


# --- one call


Arguments = tuple[list[Any], dict[str, Any]]


def _drawn(parameters: list[inspect.Parameter], choose: random.Random) -> Arguments:
    places, keywords = [], {}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            places += [ordinary("x", choose) for _ in range(choose.randrange(3))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty:
            places.append(ordinary(p.name, choose))
        elif p.kind is not p.VAR_KEYWORD and (p.default is p.empty or choose.random() < 0.1):
            keywords[p.name] = ordinary(p.name, choose)
    return places, keywords


def _accepted(fun: Callable[..., Any], parameters: list[inspect.Parameter], choose: random.Random) -> Arguments:
    """Ordinary arguments, which the function accepts if a few attempts find such."""
    for _ in range(8):
        places, keywords = _drawn(parameters, choose)
        try:
            xlamini.eval_shape(lambda: fun(*places, **keywords))  # noqa: B023
        except Exception:
            continue
        break
    return places, keywords


def arguments(fun: Callable[..., Any], choose: random.Random) -> Arguments:
    """Arguments of a call: ordinary, but for one or two odd ones."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        parameters = []
    places, keywords = _accepted(fun, parameters, choose)
    options = [p.name for p in parameters if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
    for _ in range(1 + (choose.random() < 0.25)):
        _make_odd(places, keywords, options, choose)
    return places, keywords


def _make_odd(places: list[Any], keywords: dict[str, Any], options: list[str], choose: random.Random) -> None:
    if options and (not places or choose.random() < 0.4):
        keywords[choose.choice(options)] = odd(choose)
    elif places:
        places[choose.randrange(len(places))] = odd(choose)


class Call:
    """A call with odd arguments, made from its number."""

    def __init__(self, face: str, seed: int, number: int):
        choose = random.Random(f"{face} {seed} {number}")
        self.face = face
        self.name, self.fun = choose.choice(list(functions(face).items()))
        self.places, self.keywords = arguments(self.fun, choose)
        self.is_jitted = choose.random() < 0.25

    def run(self) -> Any:
        """The result, once it has been computed."""
        call = lambda: self.fun(*self.places, **self.keywords)
        return xlamini.block_until_ready(xlamini.jit(call)() if self.is_jitted else call())

    def __str__(self) -> str:
        given = [*map(_brief, self.places), *(f"{k}={_brief(v)}" for k, v in self.keywords.items())]
        return f"{'jit ' * self.is_jitted}{self.face}.{self.name}({', '.join(given)})"


def _brief(x: Any) -> str:
    try:
        if isinstance(x, xlamini.Array | np.ndarray):
            return f"{type(x).__name__}:{x.dtype}{list(x.shape)}"
        return repr(x)[:60]
    except BaseException as error:
        return f"<{type(x).__name__} whose repr raises {type(error).__name__}>"


FROM_INSIDE = (
    *(SystemError, AttributeError, KeyError, IndexError, NameError, AssertionError, ZeroDivisionError, StopIteration),
    *(JaxRuntimeError, RecursionError, BufferError, ImportError, UnicodeError),
)
"""Errors that are wrong if a line of the library or of Python raised them, not a `raise` that says what is wrong."""


def outcome(call: Call) -> str:
    """What became of a call; it begins with WRONG if it must not."""
    try:
        call.run()
    except Boom:
        return "its own error"
    except Exception as error:
        return _judged(error, call)
    return "a result"


def _judged(error: Exception, call: Call) -> str:
    kind, endless = type(error), any(isinstance(x, list) for x in [*call.places, *call.keywords.values()])
    is_typed = not isinstance(error, FROM_INSIDE) or kind.__module__.startswith("xlamini.") or _is_deliberate(error)
    if is_typed or (endless and kind is RecursionError):
        return "a typed error"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename.removeprefix(f'{ROOT}/')}:{frame.lineno}"
    return f"WRONG {kind.__name__} at {place}: {str(error)[:200]}"


def _is_deliberate(error: Exception) -> bool:
    """Whether a `raise` of the library raised it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or f"{ROOT}/xlamini" not in last.tb_frame.f_code.co_filename:
        return False
    line = traceback.extract_tb(last)[0].line or ""
    return "raise" in line


# --- many calls, in child processes

CHILD = [sys.executable, "-m", "tests.support.odd_arguments", "--here"]


def outcomes(face: str, seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Calls, and what became of them, in child processes: for one that dies of a call, another goes on behind it."""
    first, call = 0, ""
    environment = {**os.environ, "XLAMINI_TRACEBACK_FILTERING": "off", "PYTHONPATH": str(ROOT)}
    while first < count:
        child = [*CHILD, face, str(seed), str(first), str(count)]
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
            running = subprocess.Popen(
                child, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, env=environment
            )
            with running:
                assert running.stdout is not None
                for line in running.stdout:
                    kind, text = json.loads(line)
                    if kind == "call":
                        call = text
                    else:
                        yield call, text
                        first += 1
            errors.seek(0)
            said = errors.read()[-1500:]
        if first < count:
            yield call, f"WRONG: the process ended with {running.returncode} at {first}: {said}"
            first += 1


def wrong(face: str, seed: int, count: int) -> list[str]:
    """The calls that went wrong, and how."""
    return [f"{call}: {text}" for call, text in outcomes(face, seed, count) if text.startswith("WRONG")]


def main() -> None:
    """Run calls, here or in children."""
    if sys.argv[1] != "--here":
        count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
        for face in sys.argv[3:] or FACES:
            found = collections.Counter()
            for call, text in outcomes(face, seed, count):
                found[text.split(" ")[0] if text.startswith("WRONG") else text] += 1
                if text.startswith("WRONG"):
                    sys.stdout.write(ascii(f"{call}: {text}") + "\n")
            sys.stdout.write(f"{face}: {dict(found)}\n")
            sys.stdout.flush()
        return
    warnings.simplefilter("ignore")
    faulthandler.register(signal.SIGPROF, chain=True)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    face, *numbers = sys.argv[2:]
    seed, first, last = map(int, numbers)
    for number in range(first, last):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        faulthandler.dump_traceback_later(10 * SECONDS, exit=True)
        call = Call(face, seed, number)
        for kind, tell in (("call", str), ("outcome", outcome)):
            out.write(json.dumps((kind, tell(call))) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
