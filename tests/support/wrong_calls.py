"""Wrong calls of the whole public API: each parameter of each function gets each of some wrong values.

The file needs nothing but the library that it is told, so that JAX can be asked for the same:

    python tests/support/wrong_calls.py 5 xlamini > ours.jsonl
    python tests/support/wrong_calls.py 5 jax > theirs.jsonl
    python tests/support/wrong_calls.py compare ours.jsonl theirs.jsonl

The number takes one in so many calls. A call is traced, not run, unless `--eager` says so; `--only=2.0,True` gives
these values alone. Its outcome is what the error says: whether it has the words of Python's inside, names neither the
function nor the parameter, or is long.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import re
import signal
import sys
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FACES = """
numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers scipy.special scipy.linalg scipy.signal
scipy.ndimage scipy.fft scipy.integrate scipy.optimize scipy.stats scipy.stats.norm scipy.stats.gamma scipy.cluster.vq
scipy.sparse.linalg scipy.spatial.transform image tree tree_util ops dlpack flatten_util sharding transformations
""".split()
LEFT_OUT = re.compile(
    r"print|save|tofile|load$|Tracer|^[A-Z]|frombuffer|fromfile|register|_p$|axis_index|^ndarray$|psum|pmean|pmax|pmin|"
    r"all_gather|all_to_all|ppermute|pbroadcast|pcast|pvary|pshuffle|pswapaxes|set_printoptions|default_|from_dlpack"
)
"""Classes, what changes files, and what needs axes with names."""
NO_STUB = "nn.initializers scipy.fft scipy.cluster.vq scipy.sparse.linalg scipy.ndimage scipy.linalg".split()
TRANSFORMATIONS = """
jit grad vmap jacfwd jacrev hessian value_and_grad linearize vjp jvp eval_shape make_jaxpr checkpoint custom_jvp
custom_vjp device_put block_until_ready make_mesh default_device linear_transpose closure_convert devices local_devices
device_get named_call named_scope default_matmul_precision device_count process_index pure_callback
""".split()


def _first(*args: Any) -> Any:
    return args[0] if args else 1.0


def _ordinary(root: Any, jnp: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """What arguments of these names may be."""
    key = root.random.key(0)
    vector, matrix = jnp.arange(3.0), jnp.eye(3) + 0.1
    index, mesh = jnp.array([0, 2]), root.make_mesh((1,), ("x",))
    return [
        ("fun f func fn body_fun true_fun false_fun solve matvec function", (_first, lambda *a: (a[0], a[0]))),
        ("callback", (_first,)),
        ("cond_fun", (lambda *a: False,)),
        ("tree pytree args primals tangents operands init_val xs obj init", (vector, (vector,))),
        ("n N k num size length idx deg order degree bins seed rank decimals axis_size m num_classes p q", (2, 1)),
        ("key rng", (key,)),
        ("shape new_sizes sizes dimensions sz window_dimensions new_shape", ((2, 3), (3,), ())),
        ("axis axes axis1 axis2 dimension split_axis concat_axis source destination", (0, -1, 1)),
        ("dtype new_dtype index_dtype", ("float32",)),
        ("indices idxs scatter_indices segment_ids start_indices", (index, (0,), (0, 1))),
        ("window_strides strides", ((1, 1), (1,))),
        ("limit_indices", ((2,), (2, 2))),
        ("arrays tup seq sequence elems", ([vector, vector],)),
        ("condlist", ([vector > 0],)), ("choicelist choices", ([vector],)),
        ("a A", (matrix, vector)), ("subscripts", ("ij,j",)), ("mesh", (mesh,)), ("padding", ("SAME", [(0, 1, 0)])),
        ("pred condition", (True, vector > 1)), ("init_value init_values fill_value padding_value", (0.0,)),
        ("treedef", (root.tree_util.tree_structure((1, 2)),)), ("image", (jnp.ones((4, 4, 3)),)),
        ("method", ("nearest", "linear")), ("mode", ("edge", "same")), ("pad_width", (1,)), ("reps repeats", (2,)),
        ("axis_shapes", ((1,),)), ("axis_names", (("x",),)), ("perm permutation", ((1, 0), (0,))),
        ("computation", (root.lax.add,)), ("shift", (1,)), ("newshape", ((3, 3), (3,))),
        ("indices_or_sections", (3, 1)), ("start", (0,)), ("stop", (3,)), ("window_len", (3,)), ("t", (vector,)),
    ]  # fmt: skip


def _wrong(name: str, jnp: Any, key: Any) -> dict[str, Any]:
    """What hardly any argument may be, by what it is called in reports."""
    loop: list[Any] = []
    loop.append(loop)
    # errors of these take levels of the recursion limit from JAX
    endless = {} if name == "jax" else {"loop": loop, "mixed dict": {1: 1, "a": 2}}
    return {
        "None": None, "object": object(), "text": "text", "1.5": 1.5, "1j": 1j, "[]": [], "-7": -7,
        "2**40": 2**40, "2**70": 2**70, "dict": {"a": 1}, **endless, "int": int,
        "nan": float("nan"),
        "True": True, "bytes": b"x", "set": {1, 2}, "ints": jnp.arange(2), "floats": np.ones(2, np.float32),
        "objects": np.array([None, "a"]), "texts": np.array(["a", "b"]), "complex": jnp.ones(2) * 1j, "key": key,
        "empty": np.zeros((0, 2)), "module": np, "function": _first, "many": tuple(range(1, 3000)),
        "dates": np.array(["2020-01-01"], "datetime64[D]"), "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
        "2.0": 2.0, "two": jnp.asarray(2), "numpy two": np.asarray(2), "int64": np.int64(2), "...": ...,
    }  # fmt: skip


class Library:
    """The library, and ordinary arguments made with it."""

    def __init__(self, name: str):
        self.name, self.root = name, importlib.import_module(name)
        self.jnp = importlib.import_module(f"{name}.numpy")
        named = _ordinary(self.root, self.jnp)
        self.ordinary = {name: values for names, values in named for name in names.split()}
        jnp = self.jnp
        self.unnamed = (jnp.arange(3.0), jnp.eye(3) + 0.1, jnp.arange(3), 2, 0.5, jnp.ones((2, 3, 3)))
        self.wrong = _wrong(name, self.jnp, self.root.random.key(0))

    def functions(self, face: str) -> dict[str, Callable[..., Any]]:
        """The public functions of a face."""
        if face == "transformations":
            return {n: getattr(self.root, n) for n in TRANSFORMATIONS if hasattr(self.root, n)}
        module = importlib.import_module(f"{self.name}.{face}")
        names = [n for n in sorted(dir(module)) if not n.startswith("_") and not LEFT_OUT.search(n)]
        if face in NO_STUB:  # its helpers come from elsewhere
            names = [n for n in names if str(getattr(getattr(module, n), "__module__", "")).endswith(face)]
        found = {n: getattr(module, n) for n in names}
        return {n: f for n, f in found.items() if callable(f) and not isinstance(f, type)}

    def run(self, fun: Callable[..., Any], given: dict[str, Any], is_eager: bool) -> Any:
        """Call a function with arguments by the names of its parameters."""
        places, keywords = [], {}
        for p in inspect.signature(fun).parameters.values():
            if p.name in given and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and not keywords:
                places.append(given[p.name])
            elif p.name in given and p.kind is p.VAR_POSITIONAL:
                places += given[p.name]
            elif p.name in given:
                keywords[p.name] = given[p.name]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                keywords[""] = None  # the following ones by keyword
        keywords.pop("", None)
        call = lambda: fun(*places, **keywords)
        if is_eager:
            return self.root.block_until_ready(call())
        out = []
        self.root.eval_shape(lambda: out.append(call()))
        return out


def needed(fun: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a call must give."""
    everyone = inspect.signature(fun).parameters.values()
    return [p for p in everyone if p.kind is p.VAR_POSITIONAL or (p.default is p.empty and p.kind is not p.VAR_KEYWORD)]


def accepted(library: Library, fun: Callable[..., Any]) -> dict[str, Any] | None:
    """Ordinary arguments that a function accepts, by name."""
    parameters = needed(fun)
    choices: list[tuple[Any, ...]] = []
    for p in parameters:
        values = library.ordinary.get(p.name, ()) + library.unnamed
        choices.append(tuple([x] for x in values) if p.kind is p.VAR_POSITIONAL else values)
    for values in itertools.islice(itertools.product(*choices), 150):
        given = dict(zip([p.name for p in parameters], values, strict=True))
        try:
            library.run(fun, given, False)
        except Exception:
            continue
        return given
    return None


FROM_INSIDE = (
    *(SystemError, AttributeError, KeyError, IndexError, NameError, AssertionError, ZeroDivisionError, StopIteration),
    *(RecursionError, BufferError, ImportError, UnboundLocalError, UnicodeError, MemoryError),
)
NAMED = re.compile(r"(argument '[^']*' of )?[A-Za-z_][\w.]*: ")
"""An error says whose it is; of an alias the function's first name, of a function of several that of the one inside."""
LONGEST, MOST_LINES = 1000, 8
INSIDE = re.compile(
    r"incompatible function arguments|has no attribute|_internal_|object is not (iterable|callable|subscriptable)|"
    r"unhashable|nanobind|maximum recursion|stablehlo|INVALID_ARGUMENT|keyword-only|takes \d+ positional"
)


def outcome(fun: Callable[..., Any], name: str, parameter: str, call: Callable[[], Any]) -> tuple[str, str]:
    """What became of a call, and the error's text."""
    try:
        call()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if len(text) > LONGEST or text.count("\n") >= MOST_LINES:
            return "long", f"({len(text)}) {text}"
        words = re.findall(r"\w+", text.lower())
        is_named = name.lower().strip("_") in words or bool(NAMED.match(str(error)))
        if type(error) in FROM_INSIDE and not (is_named and not INSIDE.search(text)):
            return "inside", f"{text} [{_place(error)}]"
        if not is_named and parameter.lower() not in words:
            return "unnamed", f"{text} [{_place(error)}]"
        return "error", text
    return "result", ""


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno}"


class TooLong(BaseException):
    """A call that takes too long."""


def _too_long(*_: Any) -> None:
    raise TooLong


def calls(library: Library, face: str, is_eager: bool, one_in: int = 1) -> Iterator[tuple[str, str, str]]:
    """Calls of a face with the wrong values, what became of each, and the text; for JAX those without a base too."""
    for name, fun in library.functions(face).items():
        try:
            base = accepted(library, fun)
            parameters = list(inspect.signature(fun).parameters.values())
        except (ValueError, TypeError):
            continue
        if base is None:
            yield f"{face}.{name}", "no base", ""  # no ordinary arguments were found
            continue
        for p in parameters:
            if p.kind is p.VAR_KEYWORD:
                continue
            for what, value in library.wrong.items():
                call = f"{face}.{name}({p.name}={what})"
                if zlib.crc32(call.encode()) % one_in:
                    continue
                given = {**base, p.name: [value] if p.kind is p.VAR_POSITIONAL else value}
                yield call, *_in_time(library, fun, name, p.name, given, is_eager)


def _in_time(library: Library, fun: Any, name: str, parameter: str, given: Any, is_eager: bool) -> tuple[str, str]:
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(60)
    try:
        return outcome(fun, name, parameter, lambda: library.run(fun, given, is_eager))
    except TooLong:
        return "hangs", ""
    finally:
        signal.alarm(0)


def _say(*words: Any) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def compare(ours: str, theirs: str) -> None:
    """What is wrong in ours, and what ours takes where JAX raises and the reverse."""
    lines = [map(json.loads, Path(path).read_text().splitlines()) for path in (ours, theirs)]
    mine, other = ({call: (kind, text) for call, kind, text in each} for each in lines)
    for call, (kind, text) in mine.items():
        reference = other.get(call, ("absent", ""))
        if kind == "result" and reference[0] in ("error", "unnamed", "inside", "long"):
            _say("taken", call, "|", reference[1][:150])
        elif kind not in ("result", "error", "no base"):
            _say(kind, call, "|", text[:200].replace("\n", " "))
        elif kind == "error" and reference[0] == "result":
            _say("refused", call, "|", text[:150].replace("\n", " "))
    _say(Counter(kind for kind, _ in mine.values()), Counter(kind for kind, _ in other.values()))


def main() -> None:
    """Write the outcomes of all calls as lines of JSON, or compare two such files."""
    warnings.simplefilter("ignore")
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if arguments[0] == "compare":
        return compare(*arguments[1:])
    library, one_in = Library(arguments[1]), int(arguments[0])
    only = next((a.removeprefix("--only=").split(",") for a in sys.argv if a.startswith("--only=")), library.wrong)
    library.wrong = {name: library.wrong[name] for name in only}
    for face in arguments[2:] or FACES:
        for line in calls(library, face, "--eager" in sys.argv, one_in):
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    return None


if __name__ == "__main__":
    main()
