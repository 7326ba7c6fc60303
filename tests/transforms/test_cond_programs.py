"""The functions cond, switch, select and platform_dependent; what their programs look like, keep and do."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import grad, jit, lax, make_jaxpr, numpy as jnp, random, vmap
from xlamini.core.program.jaxpr import Jaxpr
from xlamini.experimental import io_callback
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.call.higher_order import cost_of
from xlamini.staging.run.eager import program_cache
from xlamini.staging.run.eager.program_cache import run

TOLERANCE = 1e-6


@pytest.mark.full
def test_predicates_of_every_kind() -> None:
    for pred in (True, 1, 0.5, np.nan, np.bool_(True), np.array(2), jnp.array(True), jnp.uint8(3), jnp.float32(-1)):
        assert lax.cond(pred, lambda: 1, lambda: 0) == 1
        assert jit(lambda p: lax.cond(p, lambda: 1, lambda: 0))(pred) == 1
    for pred in (False, 0, 0.0, -0.0, np.bool_(False), jnp.array(0), jnp.float32(0)):
        assert lax.cond(pred, lambda: 1, lambda: 0) == 0
        assert jit(lambda p: lax.cond(p, lambda: 1, lambda: 0))(pred) == 0


@pytest.mark.full
def test_indices_are_clamped() -> None:
    functions = [lambda i=i: i for i in range(3)]
    choose = jit(lambda i: lax.switch(i, functions))
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64"):
        for index in (0, 1, 2, 3, np.iinfo(dtype).max, np.iinfo(dtype).min):
            with xlamini.enable_x64(True):
                assert lax.switch(np.array(index, dtype)[()], functions) == min(max(index, 0), 2)
                assert choose(np.array(index, dtype)) == min(max(index, 0), 2)
    assert lax.switch(-7, functions) == 0
    assert_close(vmap(lambda i: lax.switch(i, functions))(np.arange(-1, 4)), [0, 0, 1, 2, 2], 0)


def test_operand_by_keyword_and_branches_in_a_tuple() -> None:
    assert lax.cond(True, lambda x: x + 1, lambda x: x, operand=1) == 2
    assert lax.cond(False, lambda none: False, lambda none: none is None, operand=None)
    assert lax.switch(1, (lambda x: x, lambda x: -x), operand=2) == -2


def test_one_branch_is_just_called() -> None:
    assert str(make_jaxpr(lambda i, x: lax.switch(i, [jnp.sin], x))(1, 1.0)) == (
        "{ lambda ; a:i32[] b:f32[]. let c:f32[] = sin b in (c,) }"
    )


def test_weak_types_join() -> None:
    def of(a: Any, b: Any) -> tuple:
        out = lax.cond(True, lambda: a, lambda: b)
        return out.dtype.name, out.weak_type, float(out)

    strong = jnp.float32(1)
    assert of(1.5, 2.5) == ("float32", True, 1.5)
    assert of(2.0, strong) == ("float32", False, 2.0)
    assert of(strong, 2.0) == ("float32", True, 1.0)  # the type is that of the branch for False, as in JAX
    for i in range(3):
        weak = [lax.switch(i, [lambda x=x: x for x in xs]).weak_type for xs in ((strong, 1.0, 2.0), (1.0, 2.0, strong))]
        assert weak == [False, True]
    assert of(1, 2) == ("int32", True, 1.0)
    for which in (False, True):
        half = jit(lambda p, x: lax.cond(p, lambda: x, lambda: 2.0) + jnp.float16(1))(which, 1.0)
        assert half.dtype == jnp.float16
    for transformed in (grad, xlamini.jacfwd):
        out = transformed(lambda x, p: lax.cond(p, lambda: x, lambda: jnp.float32(2) * x))(1.0, False)
        assert (out.dtype, float(out)) == (jnp.float32, 2.0)


@pytest.mark.full
def test_random_keys_are_chosen() -> None:
    key = random.key(3)
    f = jit(lambda p, key: lax.cond(p, lambda k: random.fold_in(k, 1), lambda k: k, key))
    assert_close(random.key_data(f(True, key)), random.key_data(random.fold_in(key, 1)), 0)
    assert_close(random.key_data(f(False, key)), random.key_data(key), 0)
    keys = random.split(key, 2)
    found = vmap(lambda p, k: lax.cond(p, lambda: random.normal(k), lambda: random.uniform(k)))(
        np.array([True, False]), keys
    )
    assert_close(found, [random.normal(keys[0]), random.uniform(keys[1])], TOLERANCE)
    both = vmap(lambda p: lax.cond(p, lambda: keys[0], lambda: keys[1]))(np.array([False, True]))
    assert_close(random.key_data(both), random.key_data(keys)[::-1], 0)


def test_select() -> None:
    x, y = jnp.arange(3.0), -jnp.ones(3)
    assert_close(lax.select(np.array([True, False, True]), x, y), [0.0, -1.0, 2.0], 0)
    assert_close(lax.select(jnp.array(True), x, y), x, 0)
    assert lax.select(False, 1.0, 2.0) == 2.0
    assert_close(grad(lambda x: lax.select(x > 1, x * x, x).sum())(x), [1.0, 1.0, 4.0], TOLERANCE)


def test_without_jit_python_chooses() -> None:
    seen: list[Any] = []

    def taken(x: Any) -> Any:
        seen.append(x)
        return x

    with xlamini.disable_jit():
        assert lax.cond(jnp.array(True), taken, lambda x: 1 / 0, 1.0) == 1.0
        assert lax.switch(7, [lambda x: 1 / 0, taken], 1.0) == 1.0
        assert lax.platform_dependent(1.0, cpu=taken, default=lambda x: 1 / 0) == 1.0
        assert grad(lambda x: lax.cond(x > 0, taken, lambda x: 1 / 0, x))(2.0) == 1.0
        staged = make_jaxpr(lambda p: lax.cond(p, lambda: 1, lambda: 0))(True)
    assert seen[:3] == [1.0] * 3
    assert len(seen) == 4
    assert "cond[" in str(staged)


def test_an_eager_choice_in_a_loop_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_it = program_cache.compile_lowered
    monkeypatch.setattr(
        program_cache, "compile_lowered", lambda lowered: compiled.append(lowered.name) or compile_it(lowered)
    )
    x = jnp.ones(5)
    counts = []
    for i in range(5):
        w = jnp.full(5, float(i))
        lax.cond(jnp.array(i > 2), lambda x, w=w: x * w + 0.125, lambda x, w=w: x - w, x)
        counts.append(compiled.count("cond"))
    assert counts == [1] * 5


# --- programs


JAX_PRINTS = """\
{ lambda a:f32[3]; b:bool[] c:f32[3]. let
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
    e:f32[3] = cond[
      branches=(
        { lambda ; f:f32[3] g:f32[3]. let h:f32[3] = cos g in (h,) }
        { lambda ; i:f32[3] j:f32[3]. let
            k:f32[3] = sin j
            l:f32[3] = mul k i
          in (l,) }
      )
    ] d a c
  in (e,) }"""

JAX_PRINTS_SWITCH = """\
{ lambda ; a:i32[] b:f32[]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:i32[] = clamp 0:i32[] c 2:i32[]
    e:f32[] = cond[
      branches=(
        { lambda ; f:f32[]. let g:f32[] = sin f in (g,) }
        { lambda ; h:f32[]. let i:f32[] = cos h in (i,) }
        { lambda ; j:f32[]. let  in (j,) }
      )
    ] d b
  in (e,) }"""

JAX_PRINTS_PASSED_ON = """\
{ lambda ; a:f32[] b:f32[]. let
    c:bool[] = ne a 0.0:f32[]
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] c
    e:i32[] = cond[
      branches=(
        { lambda ; f:f32[]. let
            g:i32[] = convert_element_type[new_dtype=int32 weak_type=False] f
          in (g,) }
        { lambda ; h:f32[]. let  in (1:i32[],) }
      )
    ] d b
  in (b, e) }"""

JAX_PRINTS_PLATFORMS = """\
{ lambda ; a:f32[]. let
    b:i32[] = platform_index[platforms=(('cpu', 'tpu'), ('cuda',), None)]
    c:f32[] = cond[
      branches=(
        { lambda ; d:f32[]. let e:f32[] = sin d in (e,) }
        { lambda ; f:f32[]. let g:f32[] = tan f in (g,) }
        { lambda ; h:f32[]. let i:f32[] = cos h in (i,) }
      )
      branches_platforms=(('cpu', 'tpu'), ('cuda',), None)
    ] b a
  in (c,) }"""


def test_programs_print_as_in_jax() -> None:
    """Recorded from JAX 0.10.2."""
    y = jnp.ones(3)
    f = make_jaxpr(lambda p, x: lax.cond(p, lambda x: jnp.sin(x) * y, jnp.cos, x))
    assert str(f(True, y)) == JAX_PRINTS
    g = make_jaxpr(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x))
    assert str(g(1, 1.0)) == JAX_PRINTS_SWITCH
    h = make_jaxpr(lambda p, x: lax.cond(p, lambda x: (x, 1), lambda x: (x, x.astype(int)), x))
    assert str(h(1.0, np.float32(1))) == JAX_PRINTS_PASSED_ON
    on_platforms = make_jaxpr(
        lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.sin, cuda=jnp.tan, default=jnp.cos)
    )
    assert str(on_platforms(1.0)).replace("] \n", "]\n") == JAX_PRINTS_PLATFORMS


def test_what_branches_capture_is_one_list_of_operands() -> None:
    y, z = jnp.ones(3), jnp.ones(2)

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda: (x.sum() * y).sum(), lambda: (z.sum() + y).sum() * x.sum())

    jaxpr = make_jaxpr(f)(True, y).jaxpr
    assert [a.aval.shape for a in jaxpr.eqns[-1].invars] == [(), (3,), (3,), (2,)]


def _choice(jaxpr: Jaxpr) -> Any:
    return next(eqn for eqn in jaxpr.eqns if eqn.primitive is lax.cond_p)


def _staged(f: Any, *args: Any) -> Jaxpr:
    return make_jaxpr(f)(*args).jaxpr


def test_branches_share_the_residuals_they_return() -> None:
    size = 1000

    def three(x: Any) -> Any:
        return jnp.sin(jnp.sin(jnp.sin(x)))

    def two(x: Any) -> Any:
        return jnp.cos(jnp.cos(x)) + jnp.ones(7).sum()

    jaxpr = _staged(lambda i, x: lax.switch(i, [three, two, lambda x: x * 2.0, lambda x: x * x], x), 1, jnp.ones(size))
    nonzero = tuple(a.dtype == jnp.float32 for a in jaxpr.in_avals)
    lin = linearize(jaxpr, nonzero)
    new = lin.primal.out_avals[1:]
    returned = sum(a.nbytes for a in new if a.shape == (size,))
    assert returned == 3 * size * 4, "three slots, where one for each branch's residual would be five"
    assert sum(a.nbytes for a in new if a.shape == ()) <= 4, "and the branch's number"


def test_a_residual_that_is_an_operand_or_an_output_is_not_returned() -> None:
    jaxpr = _staged(lambda p, x, w: lax.cond(p, lambda: x * w, lambda: jnp.exp(x)), True, jnp.ones(9), jnp.ones(9))
    lin = linearize(jaxpr, (False, True, True))
    assert [a.shape for a in lin.primal.out_avals[1:]] == [()], "the branch's number alone"
    assert len(_choice(lin.primal).outvars) == 1


def test_what_is_known_is_computed_in_the_first_half() -> None:
    def f(p: Any, x: Any, u: Any) -> Any:
        return lax.cond(p, lambda: (jnp.sin(jnp.sin(x)) * u, x), lambda: (u, jnp.cos(x)))

    jaxpr = _staged(f, True, jnp.ones(3), jnp.ones(3))
    parted = partial_eval(jaxpr, (False, False, True))
    assert parted.unknown_out == (True, False)
    assert "sin" in str(parted.known)
    assert "sin" not in str(parted.unknown)
    unknown_choice = partial_eval(jaxpr, (True, False, False))
    assert unknown_choice.unknown_out == (True, True)
    assert str(unknown_choice.unknown).count("cond[") == 1


@pytest.mark.full
def test_random_keys_as_residuals() -> None:
    def f(p: Any, key: Any, n: Any) -> Any:
        return lax.cond(p, lambda: random.fold_in(random.split(key)[0], n), lambda: key)

    key = random.key(1)
    parted = partial_eval(_staged(f, True, key, 3), (False, False, True))
    assert parted.num_residuals == 3, "the predicate, the key, and the key that one branch makes"
    for p in (True, False):
        outs, residuals = parted.split_outputs([p, key], run(parted.known, [p, key]))
        assert outs == []
        assert_close(random.key_data(run(parted.unknown, [*residuals, 3])[0]), random.key_data(f(p, key, 3)), 0)


def test_outputs_that_nobody_uses_are_not_computed() -> None:
    def f(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda: (jnp.sin(x), jnp.exp(y)), lambda: (x, jnp.tan(y)))[0]

    lowered = jit(f).lower(True, 1.0, 2.0)
    assert "exponential" not in lowered.as_text()
    assert "sine" in lowered.as_text()


def test_a_choice_that_is_known_lowers_one_branch() -> None:
    text = jit(lambda x: lax.cond(True, jnp.sin, jnp.cos, x)).lower(1.0).as_text()
    assert "sine" in text and "cosine" not in text and "stablehlo.case" not in text
    text = jit(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)).lower(True, 1.0).as_text()
    assert "stablehlo.case" in text


def test_the_cost_is_that_of_the_dearest_branch() -> None:
    a = jnp.ones((8, 8))
    jaxpr = _staged(lambda p, x: lax.cond(p, lambda x: x @ x @ x, lambda x: x @ x, x), True, a)
    assert cost_of(jaxpr).flops == pytest.approx(2 * 2 * 8**3, rel=0.02)


# --- platform_dependent


def test_the_function_for_the_platform_runs() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(x, tpu=jnp.tan, cpu=lambda x: x * x * 3.0, default=jnp.cos)

    x = jnp.arange(3.0)
    assert_close(f(x), 3 * x * x, TOLERANCE)
    assert_close(jit(f)(x), 3 * x * x, TOLERANCE)
    assert_close(vmap(f)(x), 3 * x * x, TOLERANCE)
    assert_close(jit(vmap(grad(f)))(x), 6 * x, TOLERANCE)
    assert_close(vmap(xlamini.jacfwd(grad(f)))(x), [6.0] * 3, TOLERANCE)
    assert lax.platform_dependent(2.0, default=lambda x: x + 1) == 3.0
    assert lax.platform_dependent(2.0, tpu=lambda x: x, default=lambda x: x + 1) == 3.0


def test_the_program_holds_the_function_for_its_platform_alone() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(x, tpu=jnp.tan, cpu=jnp.sin, default=jnp.cos)

    for program in (f, grad(f)):
        text = jit(program).lower(1.0).as_text()
        assert "stablehlo.tan" not in text and "stablehlo.case" not in text


def test_captured_values_and_a_choice_of_platforms_in_a_choice() -> None:
    def f(p: Any, x: Any) -> Any:
        def on_platform() -> Any:
            return lax.platform_dependent(default=lambda: x, cpu=lambda: x * x)

        return lax.cond(p, on_platform, lambda: -x)

    assert_close(vmap(grad(f, 1))(np.array([True, False]), np.array([3.0, 4.0], np.float32)), [6.0, -1.0], TOLERANCE)


# --- effects


def _announcing(p: Any, x: Any) -> Any:
    def left(x: Any) -> Any:
        xlamini.debug.print("left {}", x)
        return x * x

    return lax.cond(p, left, lambda x: x, x)


def test_a_branch_that_prints_prints_where_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_close([_announcing(True, 3.0), _announcing(False, 3.0)], [9.0, 3.0], 0)
    assert_close([jit(_announcing)(True, 4.0), jit(_announcing)(False, 3.0)], [16.0, 3.0], 0)
    assert_close(grad(_announcing, 1)(True, 5.0), 10.0, 0)
    xlamini.effects_barrier()
    assert capsys.readouterr().out == "left 3.0\nleft 4.0\nleft 5.0\n"


def test_under_a_batched_predicate_printing_may_happen_for_every_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert_close(vmap(_announcing)(np.array([True, False]), np.array([2.0, 3.0])), [4.0, 3.0], 0)
    xlamini.effects_barrier()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "left 2.0", "left 3.0"]


def test_ordered_effects_keep_their_order_through_branches(capsys: pytest.CaptureFixture[str]) -> None:
    def say(i: int, x: Any) -> Any:
        xlamini.debug.print(f"{i} {{}}", x, ordered=True)
        return x + 1

    def f(p: Any, q: Any, x: Any) -> Any:
        x = say(0, x)
        x = lax.cond(p, lambda x: say(2, say(1, x)), lambda x: x, x)
        x = lax.switch(q, [lambda x: x, lambda x: say(3, x), lambda x: lax.cond(p, lambda: say(4, x), lambda: x)], x)
        return say(5, x)

    assert jit(f)(True, 1, 0) == 5
    assert jit(f)(False, 0, 0) == 2
    assert jit(f)(True, 2, 0) == 5
    xlamini.effects_barrier()
    assert capsys.readouterr().out.split("\n") == [
        *("0 0", "1 1", "2 2", "3 3", "5 4"), *("0 0", "5 1"), *("0 0", "1 1", "2 2", "4 3", "5 4"), ""
    ]


def test_other_effects_refuse_a_batched_predicate() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda: io_callback(lambda x: np.float32(x), x, x), lambda: x)

    x = np.float32(2)
    assert jit(f)(True, x) == 2.0
    assert_close(vmap(f, (None, 0))(False, np.ones(2, np.float32)), [1.0, 1.0], 0)
    with pytest.raises(NotImplementedError, match="run all branches, but a branch has an effect"):
        vmap(f, (0, None))(np.array([True, False]), x)
