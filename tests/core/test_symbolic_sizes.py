"""Symbolic sizes: their normal form, what bounds decide beside brute force over values, texts, constraints, errors."""
from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from tests.support import tiers
from xlamini import export, lax, numpy as jnp
from xlamini.core.sizes.expression import NumberNeeded, max_size, min_size
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.core.sizes.shapes import broadcast_shapes, count_between, span
from xlamini.core.sizes.solving import Unsolved, entries_of, solution, values_of
from xlamini.core.sizes.values import evaluate
from xlamini.errors import InconclusiveDimensionOperation, ShapeError

Values = tuple[int, int, int]
Value = Callable[..., int]


class Case(NamedTuple):
    """The constraints of a scope, and whether values of a, b and n fulfil them."""

    constraints: list[str]
    holds: Callable[[int, int, int], bool]


CASES = [
    Case([], lambda a, b, n: a > 0),
    Case(["n >= 4", "b <= a + 1"], lambda a, b, n: a > 0 and n >= 4 and b <= a + 1),
    Case(["mod(b, 4) == 0", "a >= 0", "n <= 10"], lambda a, b, n: b % 4 == 0 and n <= 10),
    Case(["a == 2*b", "n >= b"], lambda a, b, n: a == 2 * b and n >= b),
]
OPERATIONS: dict[str, tuple[Any, Any]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "//": (operator.floordiv, operator.floordiv),
    "%": (operator.mod, operator.mod),
    "max": (max_size, max),
    "min": (min_size, min),
}


def random_size(rng: random.Random, leaves: list[tuple[Any, Value]], depth: int) -> tuple[Any, Value]:
    """A size of the variables, and its value as a function of theirs."""
    if not depth or rng.random() < 0.2:
        number = rng.randint(-3, 9)
        return rng.choice([*leaves, (number, lambda *_: number)])
    name = rng.choice(list(OPERATIONS))
    of_sizes, of_numbers = OPERATIONS[name]
    x, of_x = random_size(rng, leaves, depth - 1)
    divisor = rng.choice([2, 3, 4, 8])
    divisors = [*leaves[1:], (divisor, lambda *_: divisor)]
    y, of_y = rng.choice(divisors) if name in "//%" else random_size(rng, leaves, depth - 1)
    return of_sizes(x, y), lambda *v: of_numbers(of_x(*v), of_y(*v))


def points_of(case: Case) -> list[Values]:
    least = 0 if "a >= 0" in case.constraints else 1
    grid = itertools.product(range(least, 13), range(1, 13), range(1, 13))
    return [v for v in grid if case.holds(*v)]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_random_sizes_are_decided_as_by_brute_force(request: pytest.FixtureRequest, index: int) -> None:
    case, rng = CASES[index], random.Random(index)
    points = points_of(case)
    count = {tiers.QUICK: 60, tiers.FULL: 500}.get(tiers.tier_of(request.config), 2500)
    decided = 0
    for _ in range(count):
        scope = SymbolicScope(case.constraints)
        a, b, n = export.symbolic_shape("a, b, n", scope=scope)
        leaves: list[tuple[Any, Value]] = [(a, lambda a, b, n: a), (b, lambda a, b, n: b), (n, lambda a, b, n: n)]
        (x, of_x), (y, of_y) = random_size(rng, leaves, 3), random_size(rng, leaves, 2)
        pairs = [(of_x(*v), of_y(*v)) for v in rng.sample(points, min(50, len(points)))]
        decided += check_decisions(scope, x, y, pairs)
        v = rng.choice(points)
        assert evaluate(x, dict(zip("abn", v, strict=True))) == of_x(*v), x
    assert decided > count // 2  # of three comparisons each, many of which depend on the values


def check_decisions(scope: SymbolicScope, x: Any, y: Any, pairs: list[tuple[int, int]]) -> int:
    """Whether x >= y, x < y and x == y are decided as the values say; how many are decided."""
    symbolic = not isinstance(x - y, int)
    found = [scope.at_least(x, y), scope.at_least(x, y), scope.equal(x, y)] if symbolic else [None] * 3
    for decision, compare in zip(found, (operator.ge, operator.ge, operator.eq), strict=True):
        assert decision is None or {decision} == {compare(p, q) for p, q in pairs}, f"{x} {compare} {y}: {decision}"
    return sum(decision is not None for decision in found)


B, N = export.symbolic_shape("b, n", constraints=["n >= 4"])


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (B * B - N, "b^2 - n"),
        (2 * (B + 3) - B, "b + 6"),
        ((B * N) // N, "b"),
        (B * 8 // 4, "2*b"),
        (3 * B // (2 * B), "1"),
        ((B + 3) // 2, "floordiv(b + 1, 2) + 1"),
        (B // 8 * 8, "b - mod(b, 8)"),
        (B * B // (B + 1), "b - 1"),
        (B % 7 % 7, "mod(b, 7)"),
        ((B % 2) // 2, "0"),
        (max_size(B, 3), "max(b, 3)"),
        (max_size(N, 3), "n"),
        (min_size(B, 3) - min_size(3, B), "0"),
        (B**2 * B**0, "b^2"),
        (5 - B, "-b + 5"),
        (divmod(N, N), "(1, 0)"),
    ],
)
def test_a_size_has_one_normal_form(size: Any, text: str) -> None:
    assert str(size) == text


def test_equal_sizes_are_one_object() -> None:
    assert B + N is N + B
    assert {B - 1: 1, B - 2: 2} == {B - 2: 2, B - 1: 1}
    assert hash(B - 1) != hash(B - 2)  # while hash(-1) is hash(-2)


def test_constraints_decide() -> None:
    scope = SymbolicScope(["mod(b, 8) == 0", "a <= b + 1", "c == 2*a"])
    a, b, c = export.symbolic_shape("a, b, c", scope=scope)
    assert str(c) == "2*a"
    assert b // 8 * 8 == b and b % 4 == 0 and b >= 8
    assert a <= b + 5 and c <= 2 * b + 2
    assert scope.bounds(b % 3) == (0, 2)
    assert a * b % 4 == 0 and (a * b + 5) % 8 == 5 and b * b % 16 != 0


@pytest.mark.parametrize(
    ("text", "like", "expected"),
    [
        ("b, 2*n + 1", None, "(b, 2*n + 1)"),
        ("(b, n)", None, "(b, n)"),
        ("(b+1)*2, (n)", None, "(2*b + 2, n)"),
        ("b, ...", (3, 4, 5), "(b, 4, 5)"),
        ("b, _", (3, 4), "(b, 4)"),
        ("", None, "()"),
        ("n^2, mod(b, 3), max(b, 2)", None, "(n^2, mod(b, 3), max(b, 2))"),
        (None, (3, 4), "(3, 4)"),
    ],
)
def test_shapes_from_texts(text: Any, like: Any, expected: str) -> None:
    assert str(export.symbolic_shape(text, like=like)) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: export.symbolic_shape("b, &"), "symbolic shape 'b, &': it is no list of sizes"),
        (lambda: export.symbolic_shape("b.c"), "'b.c' is no size"),
        (lambda: export.symbolic_shape("f(b, 2)"), "there are no other functions of sizes"),
        (lambda: export.symbolic_shape("1.5"), "'1.5' is no size"),
        (lambda: export.symbolic_shape("b//0"), "it divides by 0"),
        (lambda: export.symbolic_shape("b^99"), "a power must be a number from 0 to 16"),
        (lambda: export.symbolic_shape("b, ..."), "... stands for the sizes of like=, which is not given"),
        (lambda: export.symbolic_shape("..., b", like=(1, 2)), "... may stand once, at the end"),
        (lambda: export.symbolic_shape("b", like=(1, 2)), "it has 1 sizes, and the argument has 2 dimensions"),
        (lambda: export.symbolic_shape("b, 3", like=(1, 2)), "size 1 is 3, but the argument's is 2"),
        (lambda: export.symbolic_shape("(" * 3000 + "b" + ")" * 3000), "longer than 4096 characters"),
        (lambda: export.symbolic_shape("(" * 1500 + "b" + ")" * 1500), "it is no list of sizes"),
        (lambda: export.symbolic_shape("b", scope=SymbolicScope(), constraints=["b >= 2"]), "those of the scope"),
        (lambda: SymbolicScope(["a > 3"]), "one of the signs >=, <= and =="),
        (lambda: SymbolicScope("a >= 3"), "constraints must be a list"),
        (lambda: SymbolicScope(["a >= 3", "a <= 2"]), "contradicts the others"),
        (lambda: SymbolicScope(["a == a + 1"]), "the right side of == may not contain the left one"),
        (lambda: SymbolicScope(["a + b == 3"]), "the left side of == must be one term"),
        (lambda: B + export.symbolic_shape("c")[0], "of different scopes"),
        (lambda: B**-1, "the power of a size must be a number"),
    ],
)
def test_texts_that_are_no_sizes(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        (lambda: B > 3, r"b > 3 depends on the values of the symbolic sizes, under n >= 4; a constraint decides it"),
        (lambda: B > 3, r"constraints=\['b >= 4'\]"),
        (lambda: B < N, r"constraints=\['b <= n - 1'\]"),
        (lambda: max(B, N), r"n > b depends"),
    ],
)
def test_undecided_comparisons(compare: Callable[[], Any], message: str) -> None:
    with pytest.raises(InconclusiveDimensionOperation, match=message):
        compare()


@pytest.mark.parametrize("use", [range, int, float, operator.index, [1].__getitem__, np.asarray])
def test_where_a_number_is_needed(use: Callable[[Any], Any]) -> None:
    with pytest.raises(NumberNeeded, match="the size b is symbolic, and a number is needed here"):
        use(B)
    assert issubclass(NumberNeeded, TypeError)


def test_slices_and_counts_as_of_numbers() -> None:
    bounds = [None, 0, 1, 3, -1, -3, 9]
    for start, stop, step in itertools.product(bounds, bounds, [None, 1, 2, -1, -3]):
        item = slice(start, stop, step)
        first, count, by = span(item, B)
        for n in (1, 2, 3, 7):
            expected = range(*item.indices(n))
            assert (evaluate(count, {"b": n}), by) == (len(expected), expected.step), (item, n)
            assert not expected or evaluate(first, {"b": n}) == expected.start
    assert str(count_between(0, B, 2)) == "-floordiv(-b, 2)"


def test_shapes_broadcast() -> None:
    assert broadcast_shapes((B, 1), (1, 3), (3,)) == (B, 3)
    with pytest.raises(ValueError, match="do not broadcast"):
        broadcast_shapes((B,), (N,))


def test_values_from_shapes() -> None:
    shapes = [(2 * B + 1, 3), (B * N,), (N + B,)]
    steps = solution(entries_of(shapes))
    sizes = {(0, 0): 7, (1, 0): 15, (2, 0): 8}
    assert values_of(steps, lambda e: sizes[e.argument, e.dimension]) == {"b": 3, "n": 5}
    with pytest.raises(ShapeError, match=r"the size 2\*b \+ 1 is 8 for no whole number b"):
        values_of(steps[:1], lambda e: 8)
    with pytest.raises(Unsolved, match="do not determine the symbolic size b"):
        solution(entries_of([(B * B,)]))


def of_shape(*shape: Any) -> Any:
    return xlamini.ShapeDtypeStruct(shape, "float32")


def test_types_in_programs() -> None:
    program = xlamini.make_jaxpr(lambda x: jnp.concatenate([x, x]).reshape(-1))(of_shape(B, N))
    assert "a:f32[b,n]" in str(program) and "f32[2*b*n]" in str(program)
    assert xlamini.eval_shape(jnp.sum, of_shape(B, N)).shape == ()
    found = xlamini.eval_shape(lambda x: x.mean() + lax.iota("int32", x.size)[0] * B, of_shape(B, N))
    assert found.shape == ()
    with pytest.raises(ShapeError, match="negative size"):
        of_shape(-B)
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\['b - 2 >= 0'\]"):
        xlamini.eval_shape(lambda x: lax.slice(x, (0,), (B - 2,)), of_shape(B))


def special_if_one(x: Any) -> Any:
    return x * 0 if x.shape[0] == 1 else x * 2


def test_a_program_says_which_sizes_the_users_line_took_for_unequal() -> None:
    program = xlamini.make_jaxpr(special_if_one)(of_shape(B))
    assert "assume_unequal" in str(program) and "test_symbolic_sizes.py" in str(program)
    exported = export.export(xlamini.jit(special_if_one))(of_shape(B))
    np.testing.assert_array_equal(exported.call(jnp.ones(3)), [2, 2, 2])
    with pytest.raises(ValueError, match=r"the program is for b != 1, as .*test_symbolic_sizes.py.* but both are 1"):
        exported.call(jnp.ones(1))


def test_programs_with_symbolic_sizes_do_not_run() -> None:
    with pytest.raises(TypeError, match=r"has symbolic sizes, as in f32\[b\], so it is not compiled by itself; export"):
        xlamini.jit(jnp.sin).lower(of_shape(B)).compile()
    with pytest.raises(NumberNeeded):
        B * jnp.ones(3)
