"""What scripts for JAX use besides the operations: older forms, names, copies, classes as pytrees, docstrings."""

from __future__ import annotations

import collections
import copy
import logging
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, random, tree_util
from xlamini.numpy import array_methods
from xlamini.sharding import Mesh, PartitionSpec as P

# --- older and looser forms of calls


@pytest.mark.parametrize("transform", [lambda f: f, xlamini.jit])
def test_cond_with_an_operand_for_each_branch(transform: Any) -> None:
    f = transform(lambda p, x: lax.cond(p, x, lambda x: x + 1, 2 * x, lambda x: x * 5))
    assert (f(True, 3.0), f(False, 3.0)) == (4.0, 30.0)
    assert xlamini.grad(f, 1)(False, 3.0) == 10.0
    assert xlamini.vmap(f)(jnp.array([True, False]), jnp.ones(2)).tolist() == [2.0, 10.0]


def test_a_text_is_one_axis_name() -> None:
    assert xlamini.make_mesh((8,), "batch").axis_names == ("batch",)  # type: ignore[arg-type]
    assert Mesh(xlamini.devices(), "batch").axis_names == ("batch",)


def test_local_data_takes_a_spec() -> None:
    with xlamini.set_mesh(xlamini.make_mesh((8,), ("x",))):
        made = xlamini.make_array_from_process_local_data(P("x"), np.arange(8.0, dtype=np.float32))
    assert made.sharding.spec == P("x") and made.tolist() == list(range(8))


def test_vmap_shares_objects_that_are_no_arrays() -> None:
    class Config:
        scale = 3.0

    xs = jnp.arange(3.0)
    shared = xlamini.vmap(lambda x, f, c: f(x) * c.scale, in_axes=(0, None, None))(xs, jnp.square, Config())
    assert shared.tolist() == [0.0, 3.0, 12.0]
    nested = xlamini.vmap(lambda d: d["f"](d["x"]), in_axes=({"f": None, "x": 0},))({"f": jnp.square, "x": xs})
    assert nested.tolist() == [0.0, 1.0, 4.0]
    slopes = xlamini.vmap(xlamini.grad(lambda x, f: f(x)), in_axes=(0, None))(xs, lambda x: x**2)
    assert slopes.tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError, match=r"argument 'f' of <lambda> is .*give it the axis None"):
        xlamini.vmap(lambda x, f: f(x))(xs, jnp.square)


def test_shapes_of_random_numbers_may_be_any_sequence() -> None:
    class Shape(collections.UserList[int]):
        __hash__ = None  # type: ignore[assignment]

    class Plain:
        def __iter__(self) -> Any:
            return iter((2, 3))

    key = random.key(0)
    for shape in ([2, 3], Shape([2, 3]), Plain()):
        assert random.normal(key, shape).tolist() == random.normal(key, (2, 3)).tolist()  # type: ignore[arg-type]


def test_eval_shape_of_a_function_that_returns_types() -> None:
    def f(x: Any) -> Any:
        return {"a": xlamini.ShapeDtypeStruct((2,), "float32"), "b": x + 1}

    out = xlamini.eval_shape(f, 1.0)
    assert (out["a"].shape, out["b"].shape) == ((2,), ())
    with pytest.raises(TypeError, match="returned 'a' of type str"):
        xlamini.eval_shape(lambda: "a")


# --- classes and copies


class Checked:
    """A pytree whose constructor looks at its fields."""

    def __init__(self, a: Any, b: Any):
        self.a, self.b = jnp.asarray(a), b
        assert self.a.ndim <= 1


tree_util.register_pytree_node(Checked, lambda c: ((c.a, c.b), None), lambda _, ab: Checked(*ab))


def test_vmap_over_a_class_that_checks_its_fields() -> None:
    mapped = xlamini.vmap(lambda c: Checked(c.a + 1, c.b * 2))(Checked(jnp.arange(3.0), jnp.ones(3)))
    assert (mapped.a.tolist(), mapped.b.tolist()) == ([1.0, 2.0, 3.0], [2.0] * 3)


class Own(NamedTuple):
    """A NamedTuple that is registered as a node of its own."""

    a: Any
    b: Any


tree_util.register_pytree_node(Own, lambda s: ((s.a,), s.b), lambda b, a: Own(*a, b))


def test_a_named_tuple_may_be_registered() -> None:
    own = Own(1.0, "static")
    assert tree_util.tree_leaves(own) == [1.0]
    assert xlamini.jit(lambda s: Own(s.a + 1, s.b))(own) == Own(2.0, "static")
    assert xlamini.grad(lambda s: s.a**2)(own) == Own(2.0, "static")
    with pytest.raises(ValueError, match="Own is a pytree node already"):
        tree_util.register_pytree_node(Own, lambda s: ((), None), lambda *_: None)


class Agent:
    def __init__(self) -> None:
        self.factor = 2.0
        self.step = xlamini.jit(self._step)
        self.free = xlamini.jit(lambda x: x + 1)

    def _step(self, x: Any) -> Any:
        return x * self.factor


def test_objects_with_jitted_functions_are_copied() -> None:
    agent = Agent()
    agent.step(1.0)
    other = copy.deepcopy({"agent": agent})["agent"]
    other.factor = 5.0
    assert (agent.step(jnp.ones(1)).item(), other.step(jnp.ones(1)).item()) == (2.0, 5.0)
    assert other.free is agent.free
    assert copy.copy(agent).free(1) == 2


# --- names


def test_names_of_the_root() -> None:
    assert (xlamini.host_id(), xlamini.host_count(), xlamini.host_ids()) == (0, 1, [0])
    assert ".".join(map(str, xlamini.__version_info__)) == xlamini.__version__
    x = jnp.ones(2)
    assert xlamini.copy_to_host_async({"x": x})["x"] is x


def test_a_user_context_is_part_of_the_signature() -> None:
    context = xlamini.make_user_context(1)
    traces = []

    @xlamini.jit
    def f(x: Any) -> Any:
        traces.append(context.value)
        return x * context.value

    assert f(2.0) == 2.0
    with context(10):
        assert (f(2.0), f(3.0)) == (20.0, 30.0)
    assert f(3.0) == 3.0 and traces == [1, 10]


def test_debug_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "xlamini"):
        xlamini.jit(lambda x: xlamini.debug.log("x is {} and {y}", x, y=x + 1))(2.0)
        xlamini.effects_barrier()
    assert caplog.messages == ["x is 2.0 and 3.0"]
    with pytest.raises(TypeError, match=r"debug.log: the first argument is the format"):
        xlamini.debug.log(3)


def test_types_and_programs_have_the_names_of_jax() -> None:
    like = xlamini.ShapeDtypeStruct.like
    assert like(np.ones(3, np.float32)) == like(jnp.ones(3)) == xlamini.ShapeDtypeStruct((3,), "float32")
    assert like(3) == xlamini.ShapeDtypeStruct((), "int32", weak_type=True)
    table = jnp.arange(3.0)
    assert [x is table for x in xlamini.make_jaxpr(lambda i: table[i])(0).literals] == [True]
    assert xlamini.typeof(jnp.ones(2, int)).to_tangent_aval().dtype == xlamini.float0
    assert xlamini.typeof(jnp.ones(2)).at_least_vspace() is xlamini.typeof(jnp.ones(2))
    assert xlamini.typeof(jnp.ones(2, "bfloat16")).to_tangent_aval() is xlamini.typeof(jnp.ones(2, "bfloat16"))
    assert xlamini.core.ShapedArray([2], np.dtype("float32"), sharding=None) is xlamini.typeof(jnp.ones(2))
    sharding = jnp.ones(2).sharding
    assert sharding._device_assignment == sharding._addressable_device_assignment == (xlamini.devices()[0],)
    dtypes = xlamini.dtypes
    assert not dtypes.issubdtype(None, dtypes.prng_key) and dtypes.issubdtype(None, np.floating)


def test_equations_are_read_as_those_of_jax() -> None:
    closed = xlamini.make_jaxpr(xlamini.jit(lambda x: jnp.sin(x) + 1))(1.0)
    call = closed.eqns[0]
    inner = call.params["jaxpr"]
    assert inner.jaxpr is inner and list(inner.consts) == inner.literals == []
    sine = inner.eqns[0]
    assert (sine.primitive.call_primitive, sine.primitive.map_primitive) == (False, False)
    assert sine.source_info is sine.provenance
    other = sine.replace(primitive=inner.eqns[1].primitive)
    assert other.primitive.name == "add" and other.invars is sine.invars and sine.primitive.name == "sin"


def test_the_sharding_of_a_traced_value_is_in_its_type() -> None:
    with pytest.raises(AttributeError, match="'sharding'"):
        xlamini.jit(lambda x: x.sharding)(1.0)
    assert xlamini.jit(lambda x: x + hasattr(x, "sharding"))(1.0) == 1.0


@pytest.mark.parametrize("name", [n for names in array_methods.METHODS.values() for n in names.split()])
def test_every_method_has_its_function(name: str) -> None:
    assert callable(getattr(jnp.ones(2), name))


# --- what is seen


@pytest.mark.parametrize("module", [xlamini, jnp, random, lax, xlamini.nn, xlamini.scipy, xlamini.experimental])
def test_dir_shows_public_names_alone(module: Any) -> None:
    assert {n for n in dir(module) if not n.startswith("__")} <= {*module.__all__, "_src"}


def test_a_module_of_the_inside_takes_no_name() -> None:
    assert not hasattr(jnp, "complex")


def documented(x: Any) -> Any:
    """Doc of the function."""
    return x


def test_transformed_functions_say_what_they_are() -> None:
    text = xlamini.grad(documented, (0, 1)).__doc__ or ""
    assert text.startswith("The gradient of documented with respect to the positional argument(s) (0, 1)")
    assert text.endswith("Doc of the function.")
    assert "value of documented and its gradient" in (xlamini.value_and_grad(documented).__doc__ or "")
    assert "The Jacobian of documented" in (xlamini.jacfwd(documented).__doc__ or "")
    assert "documented mapped over the axes 0" in (xlamini.vmap(documented).__doc__ or "")
    assert xlamini.jit(documented).__doc__ == documented.__doc__
    assert xlamini.grad(lambda x: x).__doc__ is not None


# --- warnings


def test_integers_that_fit_are_narrowed_without_a_warning() -> None:
    assert jnp.array(np.arange(3)).dtype == jnp.asarray(np.array([], np.int64)).dtype == jnp.int32
    assert jnp.asarray(np.array([2**32 - 1], np.uint64)).dtype == jnp.uint32
    integers = (np.array([2**40]), np.array([-(2**31) - 1]), np.array([2**32], np.uint64))
    for lost in (*integers, np.ones(2), np.ones(1) * 1j):
        with pytest.warns(UserWarning, match=f"the {lost.dtype} array is narrowed"):
            jnp.array(lost)
    with warnings.catch_warnings(), xlamini.enable_x64(True):
        jnp.array(np.array([2**40]))
