"""Strict modes of promotion check the operands that the user gives, not what a function of the library does with them.

Every row whose arguments have one dtype and one rank is traced with `numpy_dtype_promotion="strict"` and
`numpy_rank_promotion="raise"`. Nothing is compiled. Of the expressions of tests/golden those are refused that JAX
refuses, but for a list.
"""
from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.rows import all_rows
from tests.rows.row import Row
from tests.support.paths import GOLDEN
from xlamini import jit, lax, vmap
from xlamini.errors import MissingRule

sys.path.append(str(GOLDEN))
from expressions import FILES, expressions, names, needs_x64
from strict import MODES, refuses

pytestmark = pytest.mark.sample(3)
REFUSED_BY_JAX = json.loads((GOLDEN / "strict.json").read_text())
DIFFERENCES = frozenset((GOLDEN / "strict_differences.txt").read_text().splitlines())
X = np.ones((2, 3), np.float32)

OWN_OPERANDS = {
    "axis_index", "lax.linalg.eig", "lax.linalg.lu: product",
    "numpy.digitize", "numpy.digitize: descending", "numpy.histogram", "scipy.linalg.schur", "scipy.linalg.rsf2csf",
    "scipy.linalg.solve_sylvester: schur", "scipy.stats.multinomial.logpmf",
    "scipy.stats.multinomial.pmf", "convert_element_type: float16", "scipy.special.sph_harm_y",
}  # fmt: skip
"""Rows that combine operands of several dtypes or ranks themselves."""


def calls(dtype: str) -> Iterator[tuple[Row, Sequence[np.ndarray]]]:
    """The rows with arguments of one dtype and rank."""
    for row in all_rows():
        if dtype not in row.dtypes or row.x64 or row.name in OWN_OPERANDS:
            continue
        for sample in row.samples[:2]:
            arguments = row.arguments(sample, dtype, np.random.default_rng(0))
            if len({(x.dtype, x.ndim) for x in arguments}) < 2:
                yield row, arguments


def failures(dtype: str, transformed: Callable[[Row, Sequence[np.ndarray]], Callable[..., Any]]) -> list[str]:
    """What is raised while the rows are traced in strict modes."""
    found = []
    with xlamini.numpy_dtype_promotion("strict"), xlamini.numpy_rank_promotion("raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # rows of conversions to real dtypes
        for row, arguments in calls(dtype):
            try:
                xlamini.eval_shape(transformed(row, arguments), *arguments)
            except (MissingRule, TypeError, ValueError) as error:
                if "has no derivative" not in str(error):
                    found.append(f"{row.name}: {error}")
    return found


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_no_function_promotes_its_own_values(dtype: str) -> None:
    assert sum(1 for _ in calls(dtype)) > 150
    assert failures(dtype, lambda row, arguments: row.op) == []


@pytest.mark.slow
def test_no_derivative_promotes_its_own_values() -> None:
    def gradient(row: Row, arguments: Sequence[np.ndarray]) -> Callable[..., Any]:
        if not row.differentiable:
            return row.op

        def total(*args: Any) -> Any:
            leaves = [x for x in xlamini.tree.leaves(row.op(*args)) if jnp.issubdtype(x.dtype, np.floating)]
            return sum((x.astype("float32").sum() for x in leaves), jnp.float32(0))

        return xlamini.grad(total, argnums=tuple(range(len(arguments))))

    assert failures("float32", gradient) == []


def test_the_user_s_operands_are_still_checked() -> None:
    x = np.ones((2, 3), np.float32)
    with xlamini.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="numpy_rank_promotion"):
        jnp.hypot(x, x[0])
    with xlamini.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="numpy_dtype_promotion"):
        jnp.where(x > 0, x, x.astype(np.int32))


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("file", FILES)
def test_expressions_are_refused_as_in_jax(file: str, mode: str) -> None:
    within = functools.partial(getattr(xlamini, f"numpy_{mode}_promotion"), MODES[mode])
    by_jax, wrong = frozenset(REFUSED_BY_JAX[mode][file]), []
    with xlamini.enable_x64(needs_x64(file)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = names(xlamini, file)
        for each in expressions(file):
            refused = refuses(xlamini, each.text, known, within)
            found = f"{mode} {'refused' if refused else 'taken'}: {each.text}"
            if refused != (each.text in by_jax) and found not in DIFFERENCES:
                wrong.append(found)
    assert wrong == []


OURS: dict[str, Callable[[], Any]] = {
    "unpackbits": lambda: jnp.unpackbits(np.array([5], np.uint8)),
    "polyfit": lambda: jnp.polyfit(np.arange(4.0), np.arange(4.0), 1),
    "pinv": lambda: jnp.linalg.pinv(np.ones((2, 2, 3), np.float32)),
    "where": lambda: jnp.sum(X, 0, where=np.array([True, False, True])),
    "multivariate_normal": lambda: xlamini.random.multivariate_normal(
        xlamini.random.key(0), np.zeros(2, np.float32), np.eye(2, dtype=np.float32), (3,)
    ),
    "attention": lambda: xlamini.nn.dot_product_attention(
        *[np.ones((1, 3, 4, 2), np.float32)] * 3, query_seq_lengths=np.array([2])
    ),
}


@pytest.mark.parametrize("name", OURS)
def test_functions_combine_their_own_values(name: str) -> None:
    with xlamini.numpy_dtype_promotion("strict"), xlamini.numpy_rank_promotion("raise"):
        xlamini.eval_shape(OURS[name])


THEIRS: dict[str, Callable[[], Any]] = {
    "operator": lambda: jnp.asarray(X) * jnp.asarray(X[0]),
    "jit": lambda: jit(lambda x, y: x * y)(X, X[0]),
    "jit of ours": lambda: jit(jnp.hypot)(X, X[0]),
    "a function of ours in another": lambda: jnp.allclose(X, X[0]),
    "body of a scan": lambda: lax.scan(lambda c, x: (c * x.sum() + (X * c).sum(0), None), X[0], X),
    "vmap": lambda: vmap(lambda x: x * X)(X),
    "apply_along_axis": lambda: jnp.apply_along_axis(lambda row: row * X, 1, X),
    "vectorize": lambda: jnp.vectorize(lambda a, b: a + b)(X, X[0]),
    "custom rule": lambda: xlamini.grad(_with_rule)(X[0]),
    "solve": lambda: jnp.linalg.solve(np.ones((2, 3, 3), np.float32), X[0]),
}


@xlamini.custom_jvp
def _with_rule(x: Any) -> Any:
    return x.sum()


_with_rule.defjvp(lambda primals, tangents: (primals[0].sum(), (X * tangents[0]).sum()))


@pytest.mark.parametrize("name", THEIRS)
def test_what_the_user_combines_is_checked(name: str) -> None:
    with xlamini.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        THEIRS[name]()
    with xlamini.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        THEIRS[name]()


FLAT, BITS, WIDE = jnp.arange(5.0), jnp.arange(9) > 3, jnp.ones((2, 3, 2))
MIXED = {
    "polyfit": lambda: jnp.polyfit(FLAT, FLAT, 2, w=FLAT + 1, cov=True),
    "cov": lambda: jnp.cov(jnp.ones((2, 5)), fweights=jnp.arange(5), aweights=FLAT),
    "packbits": lambda: jnp.unpackbits(jnp.packbits(BITS)),
    "ldexp": lambda: jnp.ldexp(FLAT, jnp.arange(5)),
    "sum: where": lambda: jnp.sum(WIDE, where=BITS[:2]),
    "mean: where": lambda: jnp.mean(WIDE, where=BITS[:2]),
    "pinv": lambda: jnp.linalg.pinv(WIDE),
    "gaussian_kde": lambda: xlamini.scipy.stats.gaussian_kde(FLAT, weights=FLAT).pdf(FLAT),
    "gaussian_kde: products": lambda: xlamini.scipy.stats.gaussian_kde(FLAT).integrate_gaussian(FLAT[0], FLAT[1]),
    "gaussian_kde: resample": lambda: xlamini.scipy.stats.gaussian_kde(FLAT).resample(xlamini.random.key(0), (3,)),
    "istft": lambda: xlamini.scipy.signal.istft(jnp.ones((5, 6), "complex64"), nperseg=8),
    "funm": lambda: xlamini.scipy.linalg.funm(jnp.eye(2), jnp.exp),
    "lpmn": lambda: xlamini.scipy.special.lpmn(1, 1, FLAT),
    "multivariate_normal": lambda: xlamini.random.multivariate_normal(
        xlamini.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)
    ),
    "one_hot": lambda: xlamini.nn.one_hot(FLAT, 3),
    "glorot_normal": lambda: xlamini.nn.initializers.glorot_normal()(xlamini.random.key(0), (2, 3), "complex64"),
    "dot_product_attention": lambda: xlamini.nn.dot_product_attention(
        WIDE[None], WIDE[None], WIDE[None], query_seq_lengths=jnp.array([1]), key_value_seq_lengths=jnp.array([2])
    ),
}
"""Calls whose operands have several ranks or dtypes, which is how they are meant to be called."""


@pytest.mark.full
@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_operands_that_belong_together_may_differ(call: Callable[[], Any]) -> None:
    with xlamini.numpy_dtype_promotion("strict"), xlamini.numpy_rank_promotion("raise"):
        xlamini.eval_shape(call)
