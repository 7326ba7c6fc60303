"""Rotations beside SciPy's, in both directions between all forms; derivatives at the identity; transformations."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.spatial import transform as scipy_transform

import xlamini
from xlamini import numpy as jnp, random
from xlamini.scipy.spatial.transform import Rotation, Slerp

SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]
RNG = np.random.default_rng(0)
QUATERNIONS = RNG.normal(size=(7, 4)).astype(np.float32)
VECTORS = RNG.normal(size=(7, 3)).astype(np.float32)
MINE, REFERENCE = Rotation.from_quat(QUATERNIONS), scipy_transform.Rotation.from_quat(QUATERNIONS)


def same(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.full
@pytest.mark.parametrize("form", ["quat", "matrix", "rotvec", "mrp"])
def test_forms_are_scipys_and_lead_back(form: str) -> None:
    found = getattr(MINE, f"as_{form}")()
    same(found, getattr(REFERENCE, f"as_{form}")())
    back = getattr(Rotation, f"from_{form}")(found)
    same(back.as_quat(canonical=True), REFERENCE.as_quat(canonical=True))
    one = getattr(Rotation, f"from_{form}")(found[2])
    same(one.as_quat(canonical=True), REFERENCE[2].as_quat(canonical=True))


@pytest.mark.parametrize("seq", [*SEQUENCES, *(s.upper() for s in SEQUENCES)])
def test_euler_angles_are_scipys(seq: str) -> None:
    same(MINE.as_euler(seq, degrees=True), REFERENCE.as_euler(seq, degrees=True), 2e-3)
    angles = VECTORS[:, :3]
    same(Rotation.from_euler(seq, angles).as_matrix(), scipy_transform.Rotation.from_euler(seq, angles).as_matrix())


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Gimbal lock:UserWarning")
@pytest.mark.parametrize(("seq", "middle"), [("xyz", 90.0), ("ZYX", -90.0), ("xyx", 0.0), ("ZXZ", 180.0)])
def test_where_two_axes_coincide_the_third_angle_is_zero(seq: str, middle: float) -> None:
    with xlamini.enable_x64(True):
        found = Rotation.from_euler(seq, np.array([30.0, middle, 20.0]), degrees=True).as_euler(seq, degrees=True)
        assert found[2] == 0
        back = Rotation.from_euler(seq, found, degrees=True).as_matrix()
        wanted = scipy_transform.Rotation.from_euler(seq, [30.0, middle, 20.0], degrees=True).as_matrix()
        same(back, wanted, 1e-6)


@pytest.mark.full
def test_products_inverses_and_angles_are_scipys() -> None:
    same((MINE * MINE[3]).as_matrix(), (REFERENCE * REFERENCE[3]).as_matrix())
    same(MINE.inv().as_matrix(), REFERENCE.inv().as_matrix())
    same(MINE.magnitude(), REFERENCE.magnitude())
    same(MINE.apply(VECTORS), REFERENCE.apply(VECTORS))
    same(MINE[1].apply(VECTORS, inverse=True), REFERENCE[1].apply(VECTORS, inverse=True))
    same(MINE.mean().as_matrix(), REFERENCE.mean().as_matrix())
    weights = np.arange(1, 8, dtype=np.float32)
    same(MINE.mean(weights).as_matrix(), REFERENCE.mean(weights).as_matrix())
    assert len(Rotation.concatenate([MINE, MINE[0]])) == 8
    same(MINE.as_quat(scalar_first=True), REFERENCE.as_quat(scalar_first=True))
    assert MINE[0].single
    assert not MINE.single


@pytest.mark.full
def test_one_angle_about_one_axis() -> None:
    for angles in (np.float32(0.3), np.array([[0.1], [0.2]], np.float32)):
        wanted = scipy_transform.Rotation.from_euler("y", angles).as_matrix()
        same(Rotation.from_euler("y", angles).as_matrix(), wanted)
    many = np.array([0.1, 0.2, 0.3], np.float32)
    same(Rotation.from_euler("y", many).as_matrix(), Rotation.from_euler("y", many[:, None]).as_matrix())


@pytest.mark.slow
def test_derivatives_exist_at_the_identity() -> None:
    def turned(v: Any) -> Any:
        return Rotation.from_rotvec(v).apply(jnp.array([1.0, 0.0, 0.0]))

    same(xlamini.jacobian(turned)(jnp.zeros(3)), [[0, 0, 0], [0, 0, 1], [0, -1, 0]])
    same(xlamini.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(jnp.zeros(3)), np.eye(3))
    same(xlamini.hessian(lambda v: turned(v)[0])(jnp.zeros(3)), np.diag([0, -1, -1]))


@pytest.mark.full
def test_derivatives_are_those_of_the_closed_form() -> None:
    v = jnp.array([0.1, -0.2, 0.3])
    same(xlamini.grad(lambda v: Rotation.from_rotvec(v).magnitude())(v), v / jnp.linalg.norm(v))
    near = jnp.array([1e-3, 2e-3, -1e-3])
    same(xlamini.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(near), np.eye(3))


@pytest.mark.full
def test_rotations_go_through_transformations() -> None:
    turn = xlamini.jit(lambda r, v: (r * r).apply(v))
    same(turn(MINE, VECTORS), (REFERENCE * REFERENCE).apply(VECTORS))
    same(xlamini.vmap(lambda r, v: r.apply(v))(MINE, VECTORS), REFERENCE.apply(VECTORS))


@pytest.mark.full
def test_random_rotations_have_no_direction() -> None:
    found = Rotation.random(random.key(0), 5000)
    same((found.quat**2).sum(1), np.ones(5000), 1e-5)
    same(found.apply(jnp.array([1.0, 0, 0])).mean(0), np.zeros(3), 0.05)
    assert Rotation.random(random.key(0)).single
    same(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2))


@pytest.mark.full
def test_slerp_is_scipys_between_and_stands_still_beyond() -> None:
    times = np.array([0.0, 1.0, 1.5, 4.0, 5.0, 6.0, 8.0], np.float32)
    mine, reference = Slerp.init(times, MINE), scipy_transform.Slerp(times, REFERENCE)
    asked = np.array([0.0, 0.3, 1.0, 1.2, 3.9, 7.9, 8.0], np.float32)
    same(mine(asked).as_matrix(), reference(asked).as_matrix(), 5e-5)
    same(mine(0.3).as_matrix(), reference(0.3).as_matrix())
    same(mine(np.float32(9)).as_matrix(), REFERENCE[-1].as_matrix())
    same(xlamini.jit(lambda s, t: s(t).as_matrix())(mine, asked), reference(asked).as_matrix(), 5e-5)
