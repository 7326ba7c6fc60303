"""`lint`: each rule fires on its sample, with the line, and not on the program beside it that does it right."""
from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, lint, nn, numpy as jnp, random, vmap
from xlamini.debug import finding, lint_rule, lint_rules

pytestmark = pytest.mark.full

X = np.linspace(1.0, 2.0, 8, dtype=np.float32)
MATRIX = np.eye(8, dtype=np.float32)
TABLE = np.ones((8, 5), np.float32)
STARTS = np.arange(8, dtype=np.int32) % 3
BIG = np.ones((600, 600), np.float32)
BYTES = np.ones((8, 8), np.int8)


def chosen(positive: Any, x: Any) -> Any:
    return lax.cond(positive, jnp.sin, lambda v: v * jnp.cos(v), x)


def branches(x: Any) -> Any:
    return vmap(lambda v: chosen(v > 1.5, v))(x)


def one_branch(x: Any) -> Any:
    return vmap(partial(chosen, x[0] > 1.5))(x)


def halved(start: Any, stop: Any) -> Any:
    return lax.while_loop(lambda v: v > stop, lambda v: v / 2, start)


def slowest(x: Any) -> Any:
    return vmap(halved, (0, None))(x, 0.1)


def same_trips(x: Any) -> Any:
    step = lambda carry: (carry[0] + 1, vmap(jnp.sin)(carry[1]))
    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x))[1]


def window(x: Any, start: Any) -> Any:
    return lax.dynamic_slice(x, (start,), (2,))


def overwritten(x: Any, start: Any) -> Any:
    return lax.dynamic_update_slice(x, jnp.zeros(2), (start,))


def residuals(predicted: Any, y: Any) -> Any:
    return ((predicted - y) ** 2).mean()


def discarded(x: Any) -> Any:
    x.at[0].set(1.0)
    return x


def assigned(x: Any) -> Any:
    x = x.at[0].set(1.0)
    return x


def captures(x: Any) -> Any:
    return (x * BIG).sum()


def grown_in_a_loop(x: Any) -> Any:
    found = x[:1]
    for _ in range(9):
        found = jnp.concatenate([found, x])
    return found


def collected(x: Any) -> Any:
    return jnp.concatenate([x[:1]] + [x] * 9)


def running(dtype: str, x: Any) -> Any:
    return lax.scan(lambda total, v: (total + v.astype(dtype), None), jnp.zeros((), dtype), x)[0]


def root(x: Any) -> Any:
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


def safe_root(x: Any) -> Any:
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.sqrt(safe), 0.0)


def log_of_softmax(x: Any) -> Any:
    probabilities = nn.softmax(x)
    return jnp.log(probabilities)


def both(a: Any, b: Any) -> Any:
    inverse = jnp.linalg.inv(a)
    return inverse @ b, inverse @ a


def forgotten(a: Any) -> Any:
    a @ a
    return a + 1


def layers(x: Any) -> Any:
    for _ in range(12):
        x = jnp.tanh(x @ MATRIX)
    return x


def scanned_layers(x: Any) -> Any:
    return lax.fori_loop(0, 12, lambda _, v: jnp.tanh(v @ MATRIX), x)


def layers_of_two(x: Any) -> Any:
    for _ in range(6):
        x = jnp.tanh(x @ MATRIX)
    return x


def updated_leaves(leaves: Any) -> Any:
    return [leaf - 0.1 * leaf for leaf in leaves]


def on_host(x: Any) -> Any:
    return xlamini.pure_callback(np.sin, x, x)


def host_in_scan(x: Any) -> Any:
    return lax.scan(lambda c, v: (c, on_host(v)), 0.0, x)[1]


def same_key(key: Any) -> Any:
    return lax.scan(lambda c, _: (c + random.normal(key), None), 0.0, length=3)[0]


def own_keys(key: Any) -> Any:
    return lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, random.split(key, 3))[0]


class Sample(NamedTuple):
    f: Callable[..., Any]
    args: tuple[Any, ...]
    twin: Callable[..., Any]
    of_twin: tuple[Any, ...]
    line: str = ""


ROW = np.ones(1024, np.float32)
MANY = np.ones(4096, np.float32)

SAMPLES = {
    "cond_runs_all_branches": Sample(branches, (X,), one_branch, (X,), "lax.cond("),
    "while_at_the_slowest_pace": Sample(slowest, (X,), same_trips, (X,), "lax.while_loop("),
    "gather_made_by_vmap": Sample(
        vmap(window), (MATRIX, STARTS), vmap(window, (0, None)), (MATRIX, 1), "lax.dynamic_slice("
    ),
    "scatter_made_by_vmap": Sample(
        vmap(overwritten), (MATRIX, STARTS), vmap(overwritten, (0, None)), (MATRIX, 1), "lax.dynamic_update_slice("
    ),
    "broadcast_blows_up": Sample(residuals, (ROW[:, None], ROW), residuals, (ROW, ROW), "(predicted - y)"),
    "discarded_update": Sample(discarded, (X,), assigned, (X,), "x.at[0].set"),
    "large_captured_array": Sample(captures, (2.0,), lambda x, big: (x * big).sum(), (2.0, BIG), "x * BIG"),
    "unused_donation": Sample(
        jit(lambda x: x.sum(), donate_argnums=0), (X,), jit(lambda x: x + 1, donate_argnums=0), (X,)
    ),
    "concatenation_in_a_loop": Sample(grown_in_a_loop, (X,), collected, (X,), "jnp.concatenate("),
    "narrow_integer_dot": Sample(
        lambda a: a @ a, (BYTES,), lambda a: jnp.matmul(a, a, preferred_element_type=jnp.int32), (BYTES,), "a @ a"
    ),
    "running_sum_stops": Sample(
        partial(running, "bfloat16"), (ROW,), partial(running, "float32"), (ROW,), "total + v"
    ),
    "division_by_zero": Sample(lambda x: x / 0.0, (X,), lambda x: x / 2.0, (X,), "x / 0.0"),
    "where_around_unsafe": Sample(root, (X,), safe_root, (X,), "jnp.sqrt(x)"),
    "log_of_one_plus": Sample(lambda x: jnp.log(1 + x), (X,), jnp.log1p, (X,), "jnp.log(1 + x)"),
    "exp_minus_one": Sample(lambda x: jnp.exp(x) - 1, (X,), jnp.expm1, (X,), "jnp.exp(x) - 1"),
    "log_of_softmax": Sample(log_of_softmax, (X,), nn.log_softmax, (X,), "jnp.log(probabilities)"),
    "transposes_cancel": Sample(lambda a: a.T.T + 1, (TABLE,), lambda a: a.T + 1, (TABLE,), "a.T.T"),
    "inverse_for_a_solve": Sample(
        lambda a, b: jnp.linalg.inv(a) @ b, (MATRIX, X), jnp.linalg.solve, (MATRIX, X), "jnp.linalg.inv(a) @ b"
    ),
    "one_hot_matmul": Sample(
        lambda i, m: nn.one_hot(i, 8) @ m, (STARTS, TABLE), lambda i, m: m[i], (STARTS, TABLE), "nn.one_hot(i, 8) @ m"
    ),
    "sort_for_top_k": Sample(
        lambda x: jnp.argsort(x)[-3:], (ROW,), lambda x: lax.top_k(x, 3)[1], (ROW,), "jnp.argsort(x)[-3:]"
    ),
    "unused_computation": Sample(forgotten, (BIG[:64, :64],), lambda a: a @ a, (BIG[:64, :64],), "a @ a"),
    "python_loop": Sample(layers, (X,), scanned_layers, (X,), "jnp.tanh(x @ MATRIX)"),
    "callback_in_a_loop": Sample(host_in_scan, (X,), on_host, (X,), "xlamini.pure_callback("),
    "key_never_split": Sample(same_key, (random.key(0),), own_keys, (random.key(0),), "lax.scan("),
    "unused_argument": Sample(lambda x, y: 2 * x, (X, X), lambda x, _: 2 * x, (X, X), ""),
    "weak_result": Sample(
        lambda x: jnp.where(x > 1, 1, 0), (X,), lambda x: (x > 1).astype(jnp.int32), (X,), "jnp.where(x > 1, 1, 0)"
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_rule_finds_its_sample_and_nothing_in_its_twin(name: str) -> None:
    sample = SAMPLES[name]
    found = [f for f in lint(sample.f)(*sample.args).found if f.rule == name]
    assert len(found) == 1
    assert sample.line in found[0].place.source
    assert not lint(sample.twin)(*sample.of_twin)


def test_every_rule_has_a_sample() -> None:
    assert {*lint_rules} >= {*SAMPLES}
    assert {*lint_rules} - {*SAMPLES} <= {"no_kernel", "float64_spreads"}


def test_wide_operands_are_found_where_the_conversion_is_implicit() -> None:
    with xlamini.enable_x64():
        x, wide = jnp.ones(8, "float32"), np.ones(8)
        found = lint(lambda x: x * wide + 1)(x).found
        assert [(f.rule, f.ratio) for f in found] == [("float64_spreads", 2)]
        assert not lint(lambda x: x * wide.astype("float32"))(x)
        assert not lint(lambda x: x.astype("float64") * wide)(x)


def test_targets_are_asked_for_kernels() -> None:
    eigenvalues = lambda a: jnp.linalg.eig(a)[0]
    assert not lint(eigenvalues)(MATRIX)
    found = lint(eigenvalues, targets=("cpu", "tpu"))(MATRIX).found
    assert [(f.rule, f.place.primitive) for f in found] == [("no_kernel", "eig")]
    assert found[0].message == "for tpu: eig: there is no kernel for platform tpu"


CLEAN = {
    "leaves of one type are no loop": (lambda xs: updated_leaves(xs), ([X] * 16,)),
    "a short loop": (layers_of_two, (X,)),
    "a mask of positions": (lambda x: jnp.tril(x), (np.ones((1024, 1024), np.float32),)),
    "an inverse used twice": (both, (MATRIX, MATRIX)),
    "the library's own where": (jnp.sinc, (X,)),
    "attention": (nn.dot_product_attention, (np.ones((2, 4, 2, 8), np.float32),) * 3),
    "norm": (grad(lambda x: jnp.linalg.norm(x)), (X,)),
    "all of a sort": (jnp.median, (X,)),
    "a key split": (lambda key: random.normal(random.split(key)[1]), (random.key(0),)),
    "einsum": (lambda a: jnp.einsum("ij,kj->ik", a, a), (MATRIX,)),
    "layer norm": (lambda x: nn.standardize(x), (TABLE,)),
    "solve": (grad(lambda a, b: jnp.linalg.solve(a, b).sum()), (MATRIX, X)),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_programs(name: str) -> None:
    f, args = CLEAN[name]
    assert not lint(f)(*args)


NESTS: dict[str, Callable[[Any], Any]] = {
    "jit": jit,
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "scan": lambda f: lambda x: lax.scan(lambda c, v: (c, f(v)), 0.0, x[None])[1],
    "vmap": lambda f: lambda x: vmap(f)(x[None]),
    "checkpoint": lambda f: grad(lambda x: xlamini.checkpoint(f)(x).sum()),
}


@pytest.mark.parametrize("nest", NESTS)
def test_a_batched_cond_is_found_under_every_transformation(nest: str) -> None:
    found = [f for f in lint(NESTS[nest](branches))(X).found if f.rule == "cond_runs_all_branches"]
    assert [(f.place.function, f.ratio) for f in found] == [("chosen", 2)]


def test_what_a_finding_says() -> None:
    (found,) = lint(residuals)(ROW[:, None], ROW).found
    line = inspect.getsourcelines(residuals)[1] + 1
    assert (found.place.file, found.place.line, found.ratio) == (__file__, line, 512)
    assert found.message == (
        "sub of shapes (1024, 1) and (1024,) gives (1024, 1024), 4.2 MB, which is 512 times its operands"
    )
    assert str(found).startswith(f"{__file__}:{line} (residuals): return")
    assert json.loads(json.dumps(found.as_dict()))["rule"] == "broadcast_blows_up"
    captured = lint(captures)(2.0)
    assert captured and "captures 'BIG', 1.4 MB" in captured.as_dict()["found"][0]["message"]


def test_nothing_found_is_false() -> None:
    found = lint(jnp.sin)(X)
    assert not found and repr(found) == "nothing found" and found.as_dict() == {"found": []}


def test_rules_of_users() -> None:
    @lint_rule
    def calls_sine(program: Any) -> Any:
        for body, eqn in program.equations("sin"):
            yield finding(eqn, f"a sine in {len(body.loops)} loops", "Use a table.", 2.0)

    try:
        in_loop = lambda x: lax.map(jnp.sin, x)
        assert [f.message for f in lint(in_loop)(X).found] == ["a sine in 1 loops"]
        assert not lint(in_loop, ignore=["calls_sine"])(X)
        assert not lint(in_loop, rules=["python_loop"])(X)
        assert lint(in_loop, rules=[calls_sine])(X).found[0].rule == "calls_sine"
    finally:
        del lint_rules["calls_sine"]


def test_errors() -> None:
    with pytest.raises(ValueError, match="lint: there is no rule 'nothing'; the rules are"):
        lint(jnp.sin, ignore=["nothing"])
    with pytest.raises(TypeError, match="lint"):
        lint(3)  # type: ignore[arg-type]
    with pytest.raises(xlamini.errors.TracerBoolConversionError):
        lint(lambda x: 1 if x > 0 else 2)(1.0)


def test_refs() -> None:
    total = xlamini.new_ref(jnp.zeros(8))

    def add(x: Any) -> Any:
        total[...] += x
        x.at[0].set(1.0)
        return x

    assert [f.rule for f in lint(add)(jnp.asarray(X)).found] == ["discarded_update"]


def test_vmap_may_refuse_to_run_all_branches() -> None:
    positive = lambda x: chosen(x > 1.5, x)
    with pytest.raises(ValueError, match=r"test_lints.py:\d+ \(chosen\) is mapped, so that all 2 branches run"):
        vmap(positive, on_cond="error")(X)
    for _ in range(2):  # also where the program is known
        with pytest.warns(UserWarning, match="give the predicate's argument in_axes=None"):
            out = vmap(positive, on_cond="warn")(X)
    np.testing.assert_allclose(out, np.where(X > 1.5, np.sin(X), X * np.cos(X)), rtol=1e-6)
    shared = partial(chosen, True)
    np.testing.assert_allclose(vmap(shared, on_cond="error")(X), np.sin(X), rtol=1e-6)
    with pytest.raises(ValueError, match="on_cond must be 'select', 'error' or 'warn', got 'loop'"):
        vmap(positive, on_cond="loop")  # type: ignore[arg-type]


def test_each_vmap_answers_for_its_own_conds() -> None:
    inner = vmap(lambda v: chosen(v > 1.5, v))
    assert vmap(lambda x, y: inner(x) + y, (None, 0), on_cond="error")(X, X).shape == (8, 8)
    assert vmap(inner, on_cond="error")(X[None]).shape == (1, 8)
    with pytest.raises(ValueError, match="all 2 branches"):
        jit(vmap(jit(lambda v: lax.scan(lambda c, _: (chosen(v > c, c), None), v, length=2)[0]), on_cond="error"))(X)
