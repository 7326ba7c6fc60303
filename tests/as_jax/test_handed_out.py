"""Programs that others read: JAX's primitives and params, consts and literals of the types stated, and bound again."""
from __future__ import annotations

import json

import pytest

from tests.support.children import passes, python
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "golden"
RECORDED = json.loads((GOLDEN / "handed_out.json").read_text())
DIFFERENCES = (GOLDEN / "handed_out_differences.txt").read_text().splitlines()
LISTED = {line for line in DIFFERENCES if not line.startswith("#")}
WALK = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, "tests/golden")
import xlamini.as_jax
import jax, jax.extend.core as core, numpy as np
from handed_out import call, calls, described
"""
DESCRIBE = """
golden = json.load(open("tests/golden/handed_out.json"))["calls"]
found = {}
for name in golden:
    fun, args = call(jax, name)
    found[name] = described(jax.make_jaxpr(fun)(*args).jaxpr, core)
print(json.dumps(found))
"""
EVALUATE = """
def bound(jaxpr, consts, args):
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    read = lambda a: a.val if isinstance(a, core.Literal) else env[a]
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    return [read(a) for a in jaxpr.outvars]

def values(leaves):
    return [np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
            for x in map(jax.numpy.asarray, jax.tree.leaves(leaves))]

golden = json.load(open("tests/golden/handed_out.json"))["calls"]
for name in list(golden)[START::STEP]:
    fun, args = call(jax, name)
    args = [jax.numpy.asarray(a) for a in args]
    closed = jax.make_jaxpr(fun)(*args)
    wanted = values(jax.jit(fun)(*args))
    again = jax.jit(lambda *xs: bound(closed.jaxpr, closed.consts, xs))
    for run in (lambda *xs: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *xs), again):
        for x, y in zip(values(run(*args)), wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5, err_msg=name)
            assert x.dtype == y.dtype, name
"""


@pytest.mark.full
def test_primitives_and_params_are_those_of_jaxs_programs() -> None:
    ran = python("-c", WALK + DESCRIBE)
    assert ran.returncode == 0, ran.stderr
    found, calls = json.loads(ran.stdout), RECORDED["calls"]
    names = {name: (_primitives(calls[name]), _primitives(found[name])) for name in calls}
    wrong_keys = [
        (name, primitive)
        for name in calls
        for primitive in names[name][0] & names[name][1]
        if calls[name][primitive] != found[name][primitive]
    ]
    assert wrong_keys == []
    known = set().union(*(theirs for theirs, _ in names.values()))
    assert set().union(*(ours for _, ours in names.values())) <= known
    assert {name for name, (theirs, ours) in names.items() if theirs != ours} == LISTED


def _primitives(described: dict[str, list[str]]) -> set[str]:
    return described.keys() - {"names"}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(5))
def test_programs_evaluate_and_their_equations_can_be_bound_again(start: int) -> None:
    passes(f"START, STEP = {start}, 5\n" + WALK + EVALUATE)


@pytest.mark.full
def test_a_sample_of_programs_evaluates_and_is_bound_again() -> None:
    passes("START, STEP = 7, 60\n" + WALK + EVALUATE)


@pytest.mark.full
def test_literals_consts_and_programs_inside_are_of_jaxs_types() -> None:
    passes(WALK + """
import jax.interpreters.batching
import jax.numpy as jnp
from jax import lax
closed = jax.make_jaxpr(lambda x: (x + np.ones(3)) * 2)(np.ones(3, np.float32))
assert closed.consts[0].dtype == closed.jaxpr.constvars[0].aval.dtype == np.float32
two = closed.eqns[-1].invars[1]
assert isinstance(two.val, np.ndarray) and two.val.dtype == np.float32
assert float(two.val) == 2 and two.hash is not None and jax.typeof(two.val) == two.aval
assert type(two.val + 1) is not type(two.val) and type(np.add(two.val, np.ones(2))) is np.ndarray

loop = jax.make_jaxpr(lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x))(np.ones(3, np.float32)).eqns[0]
assert isinstance(loop.params["jaxpr"], core.ClosedJaxpr) and not isinstance(loop.params["jaxpr"], core.Jaxpr)
cond = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0).eqns[-1]
assert all(isinstance(branch, core.ClosedJaxpr) for branch in cond.params["branches"])
assert [j.eqns[0].primitive.name for j in core.jaxprs_in_params(cond.params)] == ["cos", "sin"]
assert isinstance(jax.jit(jnp.sin).trace(1.0).jaxpr.jaxpr, core.Jaxpr)
(call,) = jax.make_jaxpr(lambda m: jnp.linalg.slogdet(m)[1])(np.eye(3, dtype=np.float32)).eqns
assert call.params["name"] == "slogdet" and len(call.outvars) == 2
(product,) = jax.make_jaxpr(lambda x: x * x)(1.0).eqns
batch = jax.interpreters.batching.primitive_batchers[product.primitive]
squares, dim = batch((jnp.arange(3.0),) * 2, (0, 0), **product.params)
assert dim == 0 and squares.tolist() == [0, 1, 4]
variable = core.Var(two.aval, None, None)
assert isinstance(variable, core.Var) and variable.initial_qdd is None
assert lax.sin_p.abstract_eval(two.aval, accuracy=None)[0].shape == ()
assert float(lax.sin_p.impl(jnp.float32(0), accuracy=None)) == 0
""")


CHANGED = """
import jax.extend.core.primitives
import jax.numpy as jnp
from jax import lax

def rebuilt(jaxpr):
    eqns = []
    for eqn in jaxpr.eqns:
        changed = {k: rebuilt_closed(v) for k, v in eqn.params.items() if isinstance(v, core.ClosedJaxpr)}
        eqn = eqn.replace(params={**eqn.params, **changed})
        eqns.append(eqn.replace(primitive=lax.cos_p) if eqn.primitive is lax.sin_p else eqn)
    return jaxpr.replace(eqns=eqns)

def rebuilt_closed(closed):
    return core.ClosedJaxpr(rebuilt(closed.jaxpr), closed.consts)

def of(sin):
    def f(x):
        products = lax.scan(lambda c, v: (c * sin(v), c), 1.0, x)[0]
        return sin(x) + products + jnp.logaddexp(sin(x), x + np.ones(3))
    return f

f, g = of(jnp.sin), of(jnp.cos)
x = np.array([0.3, 0.5, 0.9], np.float32)
changed = core.jaxpr_as_fun(rebuilt_closed(jax.make_jaxpr(f)(x)))
np.testing.assert_allclose(changed(x)[0], g(x), rtol=1e-6)
slope = jax.grad(lambda x: changed(x)[0].sum())(x)
np.testing.assert_allclose(slope, jax.grad(lambda x: g(x).sum())(x), rtol=1e-5)
# A changed program with captured values whose equations hold an array beside them.
closed = jax.make_jaxpr(lambda x: (x + np.arange(3)) * jnp.sin(x))(x)
eqns = list(closed.eqns)
array = core.Literal(np.array([2, 3, 4], np.float32), eqns[-1].outvars[0].aval)
eqns[-1] = eqns[-1].replace(invars=[eqns[-1].invars[0], array])
held = core.ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)
wanted = (x + np.arange(3)) * np.array([2, 3, 4])
for run in (core.jaxpr_as_fun(held), jax.jit(lambda x: core.jaxpr_as_fun(held)(x)),
            lambda x: jax.extend.core.primitives.jit_p.bind(x, jaxpr=held, name="held", inline=False)):
    np.testing.assert_allclose(run(x)[0], wanted, rtol=1e-6)

# A program made of nothing but public constructors.
a = core.Var(jax.core.ShapedArray((3,), np.float32))
b, c = core.Var(a.aval), core.Var(a.aval)
by_hand = core.Jaxpr([], [a], [c], [
    core.new_jaxpr_eqn([a], [b], lax.sin_p, {"accuracy": None}, core.no_effects),
    core.new_jaxpr_eqn([b, b], [c], lax.mul_p, {"out_dtype": None}, core.no_effects)])
np.testing.assert_allclose(jax.core.eval_jaxpr(by_hand, [], x)[0], np.sin(x) ** 2, rtol=1e-6)
"""


@pytest.mark.full
def test_a_changed_program_is_what_its_equations_say() -> None:
    passes(WALK + CHANGED)


@pytest.mark.full
def test_calls_within_calls_have_the_operands_of_jaxs() -> None:
    """In the order of the arguments, captured arrays too, and Python numbers, which are converted."""
    passes(WALK + """
import jax.numpy as jnp

def calls(fun, *args):
    return {eqn.params["name"]: eqn for eqn in jax.make_jaxpr(fun)(*args).eqns if eqn.primitive.name == "jit"}

def shapes(eqn):
    return [a.aval.shape for a in eqn.invars]

x, captured = np.ones(3, np.float32), jnp.eye(3)
assert shapes(calls(jnp.linalg.solve, np.eye(3, dtype=np.float32), x)["solve"]) == [(3, 3), (3,)]
assert shapes(calls(lambda x: jnp.linalg.solve(captured, x), x)["solve"]) == [(3, 3), (3,)]
chosen = calls(lambda b, x: jnp.where(b, 0, x), x > 0, x)["_where"]
assert shapes(chosen) == [(3,), (), (3,)] and chosen.invars[1].val == 0 and chosen.invars[1].aval.weak_type
assert [eqn.primitive.name for eqn in chosen.params["jaxpr"].eqns][0] == "convert_element_type"
whole = jax.make_jaxpr(lambda x: jax.nn.elu(x) + jax.nn.elu(x + 1))(x)
inner = [[e.params["name"] for e in eqn.params["jaxpr"].eqns if e.primitive.name == "jit"]
         for eqn in whole.eqns if eqn.primitive.name == "jit"]
assert inner == [["_where"] * 2] * 2, inner
assert "remainder" in calls(lambda x: x % 2, x) and "floor_divide" in calls(lambda x: 2 // x, x)
narrow = jax.make_jaxpr(lambda x: jnp.where(x > 0, x, 300))(x.astype(np.float16))
assert jax.core.eval_jaxpr(narrow.jaxpr, [], x.astype(np.float16))[0].dtype == np.float16
""")


@pytest.mark.full
def test_two_calls_side_by_side_are_two_equations() -> None:
    passes(WALK + """
import jax.numpy as jnp

def f(x):
    for _ in range(3):
        x = jax.nn.softplus(x)
    return x

names = [eqn.params["name"] for eqn in jax.make_jaxpr(f)(1.0).eqns]
assert names == ["softplus"] * 3, names
""")
