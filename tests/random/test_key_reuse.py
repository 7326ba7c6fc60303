"""Random keys that a program uses twice: 25 programs that do, and 25 that are right, with both kinds of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import errors, lax, numpy as jnp, random
from xlamini.interpreters.key_reuse import draws, key_uses

normal, uniform, split, fold_in = random.normal, random.uniform, random.split, random.fold_in
STEPS = np.arange(3)
ON = np.bool_(True)


def noisy(x: Any, key: Any) -> Any:
    return jnp.sin(x * normal(key))


@xlamini.custom_jvp
def drawn(key: Any) -> Any:
    return normal(key)


drawn.defjvp(lambda primals, tangents: (drawn(*primals), jnp.zeros(())))


def loop(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A scan whose body has the key of outside."""
    return lambda key: lax.scan(lambda c, i: (c + body(key), None), 0.0, STEPS)[0]


MISUSES: dict[str, Callable[[Any], Any]] = {
    "two draws": lambda key: normal(key) + uniform(key),
    "a draw after a split": lambda key: (split(key), normal(key)),
    "a split after a draw": lambda key: (normal(key), split(key)),
    "two splits": lambda key: (split(key), split(key, 3)),
    "a Python loop": lambda key: [normal(key) for _ in range(2)],
    "an element twice": lambda key: (lambda keys: normal(keys[0]) + normal(keys[0]))(split(key)),
    "all keys and one of them": lambda key: (lambda keys: (xlamini.vmap(normal)(keys), normal(keys[1])))(split(key)),
    "all keys twice": lambda key: (lambda keys: [xlamini.vmap(f)(keys) for f in (normal, uniform)])(split(key)),
    "unpacked twice": lambda key: (lambda a, b: normal(a) + normal(b) + uniform(b))(*split(key)),
    "reshaped": lambda key: (lambda keys: [xlamini.vmap(normal)(keys), split(keys.reshape(2, 2)[:, 0][0])])(
        split(key, 2)) if key.ndim else (normal(key), normal(key.reshape(1)[0])),
    "a scan": loop(normal),
    "a carry that stays": lambda key: lax.scan(lambda k, i: (k, normal(k)), key, STEPS),
    "a while loop": lambda key: lax.while_loop(lambda x: x < 3, lambda x: x + 1 + uniform(key), 0.0),
    "a fori_loop": lambda key: lax.fori_loop(0, 3, lambda i, x: x + normal(key), 0.0),
    "a map": lambda key: lax.map(lambda x: x + normal(key), STEPS),
    "after a scan that took it": lambda key: (lax.scan(lambda k, i: (split(k)[0], i), key, STEPS), normal(key)),
    "a branch, and after it": lambda key: (lax.cond(ON, normal, lambda k: 0.0, key), normal(key)),
    "a branch under vmap, and after it": lambda key: xlamini.vmap(
        lambda on, k: lax.cond(on, normal, lambda k: 0.0, k) + normal(k))(STEPS > 1, split(key, 3)),
    "within a branch": lambda key: lax.cond(ON, lambda k: normal(k) + uniform(k), lambda k: 0.0, key),
    "two jitted functions": lambda key: xlamini.jit(normal)(key) + xlamini.jit(uniform)(key),
    "within a jitted function": lambda key: xlamini.jit(lambda k: normal(k) + uniform(k))(key),
    "a closure": lambda key: xlamini.jit(lambda x: x + normal(key))(1.0) + normal(key),
    "under vmap": lambda key: xlamini.vmap(lambda k: normal(k) + uniform(k))(split(key)),
    "under grad": lambda key: xlamini.grad(lambda x: noisy(x, key) + noisy(2 * x, key))(1.0),
    "under checkpoint": lambda key: xlamini.grad(xlamini.checkpoint(lambda x: noisy(noisy(x, key), key)))(1.0),
    "two custom rules": lambda key: drawn(key) + drawn(key),
    "a permutation and a choice": lambda key: (random.permutation(key, 5), random.choice(key, 5)),
}

RIGHT: dict[str, Callable[[Any], Any]] = {
    "one draw": normal,
    "children of a split": lambda key: (lambda a, b: normal(a) + normal(b))(*split(key)),
    "a chain of splits": lambda key: (lambda a, b: (normal(b), *split(a)))(*split(key)),
    "elements": lambda key: (lambda keys: [normal(keys[i]) for i in range(3)])(split(key, 3)),
    "fold_in": lambda key: normal(fold_in(key, 0)) + normal(fold_in(key, 1)),
    "fold_in after a draw": lambda key: normal(key) + normal(fold_in(key, 1)),
    "fold_in in a scan": lambda key: lax.scan(lambda c, i: (c + normal(fold_in(key, i)), None), 0.0, STEPS)[0],
    "fold_in in a fori_loop": lambda key: lax.fori_loop(0, 3, lambda i, x: x + normal(fold_in(key, i)), 0.0),
    "a carry that is split": lambda key: lax.scan(lambda k, i: (lambda a, b: (a, normal(b)))(*split(k)), key, STEPS),
    "keys to scan over": lambda key: lax.scan(lambda c, k: (c + normal(k), None), 0.0, split(key, 3))[0],
    "a while loop that splits": lambda key: lax.while_loop(
        lambda s: s[1] < 3, lambda s: (split(s[0])[0], s[1] + 1), (key, 0)),
    "both branches": lambda key: lax.cond(ON, normal, uniform, key),
    "both branches under vmap": lambda key: xlamini.vmap(lambda on, k: lax.cond(on, normal, uniform, k))(
        STEPS > 1, split(key, 3)),
    "both branches in a loop under vmap": lambda key: xlamini.vmap(lambda n, k: lax.while_loop(
        lambda s: s[1] < n, lambda s: (lambda a, b: (a, s[1] + lax.cond(s[1] > 1, normal, uniform, b)))(*split(s[0])),
        (k, 0.0)))(STEPS, split(key, 3)),
    "a switch": lambda key: lax.switch(1, [normal, uniform, lambda k: 0.0], key),
    "vmap of keys": lambda key: xlamini.vmap(normal)(split(key, 4)),
    "vmap with one key": lambda key: xlamini.vmap(lambda x, k: x + normal(k), (0, None))(STEPS, key),
    "grad": lambda key: xlamini.value_and_grad(noisy)(1.0, key),
    "jvp": lambda key: xlamini.jvp(lambda x: noisy(x, key), (1.0,), (1.0,)),
    "hessian": lambda key: xlamini.hessian(noisy)(1.0, key),
    "checkpoint computes again": lambda key: xlamini.grad(xlamini.checkpoint(noisy))(1.0, key),
    "checkpoint in a scan": lambda key: xlamini.grad(
        lambda x: lax.scan(lambda c, k: (xlamini.checkpoint(noisy)(c, k), None), x, split(key, 3))[0])(1.0),
    "clone": lambda key: normal(key) + uniform(random.clone(key)),
    "clones only": lambda key: normal(random.clone(key)) + normal(random.clone(key)),
    "a scan of one step": lambda key: lax.scan(lambda c, i: (c + normal(key), None), 0.0, STEPS[:1])[0],
    "a key that is returned": lambda key: (normal(key), key),
    "the words of a key": lambda key: (normal(key), random.key_data(key)),
    "a custom rule": lambda key: xlamini.jvp(drawn, (key,), (np.zeros(key.shape, xlamini.dtypes.float0),)),
    "poisson": lambda key: random.poisson(key, 3.0),
    "binomial": lambda key: random.binomial(key, 5, 0.3),
    "dropout in layers": lambda key: [random.bernoulli(k, 0.9, (3,)) for k in split(key, 4)],
}

KEYS = {"typed": random.key, "raw": random.PRNGKey}
IMPOSSIBLE = {("raw", "reshaped"), ("raw", "a custom rule")}
kinds = pytest.mark.parametrize("kind", KEYS)


def samples(table: dict[str, Any]) -> Any:
    pairs = [(kind, name) for kind in KEYS for name in table if (kind, name) not in IMPOSSIBLE]
    return pytest.mark.parametrize(("kind", "name"), pairs)


@pytest.fixture(autouse=True)
def _looked_for() -> Any:
    with xlamini.debug_key_reuse(True):
        yield


@samples(MISUSES)
def test_misuses(kind: str, name: str) -> None:
    with pytest.raises(errors.KeyReuseError, match="random key"):
        xlamini.jit(MISUSES[name]).lower(KEYS[kind](0))


@samples(RIGHT)
def test_right_uses(kind: str, name: str) -> None:
    xlamini.jit(RIGHT[name]).lower(KEYS[kind](0))


def test_the_corpora_are_large() -> None:
    assert len(MISUSES) >= 25 and len(RIGHT) >= 25


def test_both_lines_are_named() -> None:
    def f(key: Any) -> Any:
        a = normal(key)
        return a + uniform(key)

    line = f.__code__.co_firstlineno
    with pytest.raises(errors.KeyReuseError) as caught:
        xlamini.jit(f).lower(random.key(0))
    here = f"{__file__}:{{}} (test_both_lines_are_named.<locals>.f)"
    assert (
        f"f: a random key is used twice, and gives the same numbers: random_bits at {here.format(line + 1)}, and "
        f"random_bits at {here.format(line + 2)}; split it before: key_a, key_b = random.split(key), or "
        "random.clone(key) if you mean it"
    ) in str(caught.value)


def test_a_loop_is_named() -> None:
    with pytest.raises(errors.KeyReuseError, match=r"each iteration of a loop uses the same .*: scan at .*fold_in"):
        xlamini.jit(MISUSES["a scan"]).lower(random.key(0))


def test_without_the_flag() -> None:
    f = xlamini.jit(MISUSES["two draws"])
    with xlamini.debug_key_reuse(False), pytest.warns(errors.KeyReuseWarning) as caught:
        f(random.key(0))
        f(random.key(0))
    assert len(caught) == 1
    for _ in range(2):
        with pytest.raises(errors.KeyReuseError, match="a random key is used twice"):
            f(random.key(0))


def test_programs_without_keys_are_not_analysed():
    jaxpr = xlamini.make_jaxpr(lambda x: lax.scan(lambda c, a: (jnp.sin(c), a), x, STEPS))(1.0).jaxpr
    assert not draws(jaxpr) and key_uses(jaxpr) == ((), (), ())


def test_a_raw_clone_is_the_key():
    key = random.PRNGKey(3)
    assert xlamini.jit(random.clone)(key).tolist() == random.clone(key).tolist() == key.tolist()


@samples(MISUSES)
def test_misuses_are_warnings_without_the_flag(kind: str, name: str) -> None:
    with xlamini.debug_key_reuse(False), pytest.warns(errors.KeyReuseWarning, match="random key"):
        xlamini.jit(MISUSES[name]).lower(KEYS[kind](0))


@samples(RIGHT)
def test_right_uses_are_silent_without_the_flag(kind: str, name: str) -> None:
    with xlamini.debug_key_reuse(False):
        xlamini.jit(RIGHT[name]).lower(KEYS[kind](0))


def test_a_warning_points_at_the_call_and_eager_programs_warn_too() -> None:
    key = random.key(0)
    body = lambda c, i: (c + normal(key), None)
    with xlamini.debug_key_reuse(False), pytest.warns(errors.KeyReuseWarning, match="each iteration") as caught:
        lax.scan(body, 0.0, STEPS)
    assert caught[0].filename == __file__


EAGER_MISUSES = {
    "two draws": MISUSES["two draws"],
    "a draw after a split": MISUSES["a draw after a split"],
    "a Python loop": MISUSES["a Python loop"],
    "two jitted functions": lambda key: (xlamini.jit(normal)(key), xlamini.jit(uniform)(key)),
    "one jitted function twice": lambda key: (lambda f: (f(key), f(key)))(xlamini.jit(lambda k: normal(k))),
    "two arguments": lambda key: xlamini.jit(lambda a, b: normal(a) + normal(b))(key, key),
    "eager gradients": lambda key: [xlamini.grad(noisy)(1.0, key) for _ in range(2)],
    "an eager scan": lambda key: (lax.scan(lambda k, i: (split(k)[0], normal(k)), key, STEPS), normal(key)),
    "what a function returns": lambda key: xlamini.jit(lambda k: (normal(k), k))(key)[1] is None or normal(
        xlamini.jit(lambda k: (normal(k), k))(random.clone(key))[1]),
}


@pytest.mark.parametrize("name", EAGER_MISUSES)
def test_keys_outside_of_programs(name: str) -> None:
    with pytest.raises(errors.KeyReuseError, match="random key"):
        EAGER_MISUSES[name](random.key(0))


@pytest.mark.parametrize("name", [name for name in RIGHT if "scan of one" not in name])
def test_right_uses_outside_of_programs(name: str) -> None:
    RIGHT[name](random.key(0))


def test_the_line_of_the_earlier_use() -> None:
    key = random.key(0)
    normal(key)
    with pytest.raises(errors.KeyReuseError) as caught:
        uniform(key)
    line = test_the_line_of_the_earlier_use.__code__.co_firstlineno
    place = f"{__file__}:{{}} (test_the_line_of_the_earlier_use)"
    uses = f"uniform at {place.format(line + 4)} uses a random key that was used before, at {place.format(line + 2)}"
    assert uses in str(caught.value)


def test_histories_are_kept_under_the_flag_only() -> None:
    key = random.key(0)
    with xlamini.debug_key_reuse(False):
        normal(key), normal(key)
    normal(key)
    with pytest.raises(errors.KeyReuseError):
        normal(key)
