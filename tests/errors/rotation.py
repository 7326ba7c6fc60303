"""Rotations and the turning between them."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini.errors import ShapeError
from xlamini.scipy.spatial.transform import Rotation, Slerp

ONE, TWO = Rotation.identity(), Rotation.identity(2)

ROWS = [
    row("quat", lambda: Rotation.from_quat(ones(3)), ShapeError, "from_quat: 4 numbers", "got shape (3,)"),
    row("matrix", lambda: Rotation.from_matrix(ones(2, 3)), ShapeError, "from_matrix", "(..., 3, 3)", "got (2, 3)"),
    row("rotvec", lambda: Rotation.from_rotvec(ones(2)), ShapeError, "from_rotvec: 3 numbers", "got shape (2,)"),
    row("seq", lambda: Rotation.from_euler("xYz", ones(3)), ValueError, "of 'xyz', or of 'XYZ'; got 'xYz'"),
    row("long seq", lambda: Rotation.from_euler("xyzx", ones(4)), ValueError, "one to three", "got 'xyzx'"),
    row("angles", lambda: Rotation.from_euler("xyz", ones(2)), ShapeError, "takes 3 angles", "got shape (2,)"),
    row("as_euler", lambda: ONE.as_euler("xxy"), ValueError, "neighbours different", "got 'xxy'"),
    row("vector", lambda: ONE.apply(ones(4)), ShapeError, "apply: 3 numbers", "got shape (4,)"),
    row("length", lambda: len(ONE), TypeError, "one rotation has no length"),
    row("index", lambda: ONE[0], TypeError, "one rotation cannot be indexed"),
    row("times", lambda: Slerp.init(ones(3), TWO), ShapeError, "times of shape (3,)", "shape (2, 4)"),
    row("one time", lambda: Slerp.init(ones(1), ONE), ShapeError, "at least two times"),
]
