"""What is tested of every public function: `python -m tests.support.report [--untested] [FACE...]`.

One line a function: how many tests compare its values (rows of tests/rows beside NumPy or SciPy, expressions of
tests/golden beside JAX), in how many dtypes, and whether its derivatives, vmap and jit are checked. `-` says not at
all, `none` that the function has no derivative, or cannot be mapped. Names of one function count together. Functions
that have a test of their own, being of Python objects, files or text, are listed with its name.
"""
from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from tests.rows import all_rows
from tests.rows.row import Row
from tests.support.paths import GOLDEN
from xlamini.core.program.primitive import Primitive

sys.path.append(str(GOLDEN))
from expressions import FILES, MODULES, Expression, expressions

DISTRIBUTIONS = (
    *("bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom"),
    *("gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto"),
    *("poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy"),
)
FACES = (
    *("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn", "nn.initializers", "image", "ops"),
    *("flatten_util", "dlpack", "scipy.special", "scipy.linalg", "scipy.fft", "scipy.signal", "scipy.ndimage"),
    *("scipy.stats", "scipy.optimize", "scipy.sparse.linalg", "scipy.integrate", "scipy.interpolate"),
    "scipy.cluster.vq",
    *(f"scipy.stats.{name}" for name in DISTRIBUTIONS),
)
ELSEWHERE = {
    **dict.fromkeys(
        (
            *("numpy.array_repr", "numpy.array_str", "numpy.fromfile", "numpy.fromiter", "numpy.from_dlpack"),
            *("numpy.get_printoptions", "numpy.iterable", "numpy.load", "numpy.printoptions", "numpy.save"),
            *("numpy.savez", "numpy.set_printoptions", "dlpack.from_dlpack"),
        ),
        "test_numpy_io.py",
    ),
    "nn.get_scaled_dot_general_config": "test_scaled_matmul.py",
    "random.key_dtype": "test_random.py",
    "scipy.optimize.minimize": "test_minimize.py",
    **dict.fromkeys((f"scipy.sparse.linalg.{name}" for name in ("bicgstab", "cg", "gmres")), "test_sparse_solvers.py"),
}
COLUMNS = ("rows", "beside JAX", "dtypes", "grad", "vmap", "jit")


@dataclass
class Tested:
    """The tests of one function."""

    names: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    expressions: list[Expression] = field(default_factory=list)

    @property
    def elsewhere(self) -> str:
        """The file of the test that the function has of its own, if it has."""
        return next((ELSEWHERE[name] for name in self.names if name in ELSEWHERE), "")

    @property
    def untested(self) -> bool:
        return not self.rows and not self.expressions and not self.elsewhere

    def cells(self) -> list[str]:
        """What stands in each of the columns."""
        gradients = sum(e.family == "gradients" for e in self.expressions)
        values = [row for row in self.rows if row.reference is not None]
        return [
            _number(len(values)),
            _number(len(self.expressions) - gradients),
            _number(len({dtype for row in self.rows for dtype in row.dtypes})),
            _yes([row.differentiable for row in self.rows], bool(gradients)),
            _yes([row.batched for row in self.rows]),
            _yes([True for row in self.rows]),
        ]


def functions(face: str) -> Iterator[tuple[str, Any]]:
    """The public functions of a face, with the functions that primitives are."""
    module = importlib.import_module(f"xlamini.{face}")
    for name in sorted(getattr(module, "__all__", dir(module))):
        member = getattr(module, name)
        own = face.rpartition(".")[2] not in DISTRIBUTIONS or getattr(member, "__module__", "") == module.__name__
        if not name.startswith("_") and not name.endswith("_p") and _is_function(member) and own:
            yield f"{face}.{name}", member


def report(faces: Sequence[str] = FACES) -> list[Tested]:
    """One entry for each function of these faces."""
    found: dict[Any, Tested] = defaultdict(Tested)
    for face in faces:
        for name, function in functions(face):
            found[function].names.append(name)
    rows, texts = _rows(), _expressions()
    for tested in found.values():
        for name in tested.names:
            tested.rows += rows[name]
            tested.expressions += texts[name]
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--untested", action="store_true", help="only functions without any test here")
    parser.add_argument("faces", nargs="*", metavar="FACE", help="numpy, lax.linalg, …; all if none is given")
    given = parser.parse_args()
    found = report(given.faces or FACES)
    lacking = [t for t in found if t.untested]
    print(f"{'function':44}", *(f"{c:>10}" for c in COLUMNS))
    for tested in lacking if given.untested else found:
        print(f"{' = '.join(tested.names):44}", *(f"{c:>10}" for c in tested.cells()), "", tested.elsewhere)
    print(f"{len(found)} functions, {len(lacking)} of them without a test")


# --- helpers


def _is_function(member: Any) -> bool:
    if isinstance(member, type):
        return False
    ufunc = type(member).__name__ in ("ufunc", "custom_jvp", "custom_vjp")
    return isinstance(member, FunctionType | Primitive) or ufunc


def _rows() -> dict[str, list[Row]]:
    """Rows by the function they are named for."""
    found = defaultdict(list)
    for row in all_rows():
        name = row.name.partition(":")[0]
        found[name if "." in name else f"lax.{name}"].append(row)
    return found


def _expressions() -> dict[str, list[Expression]]:
    """Expressions by each function that they call."""
    found = defaultdict(list)
    for expression in (each for file in FILES for each in expressions(file)):
        for path in set(re.findall(r"\b([a-z_]\w*(?:\.\w+)+)\(", expression.text)):
            alias, _, rest = path.partition(".")
            if alias in MODULES:
                found[f"{MODULES[alias]}.{rest}"].append(expression)
    return found


def _number(n: int) -> str:
    return str(n) if n else "-"


def _yes(marks: Iterable[bool], otherwise: bool = False) -> str:
    marks = list(marks)
    if any(marks) or otherwise:
        return "yes"
    return "none" if marks else "-"


if __name__ == "__main__":
    main()
