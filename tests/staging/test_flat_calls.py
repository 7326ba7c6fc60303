"""api_util: arguments of calls as flat leaves."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlamini import ShapeDtypeStruct, api_util, tree


def test_types_of_values() -> None:
    assert str(api_util.shaped_abstractify(3.0)) == "~float32[]"
    struct = ShapeDtypeStruct((2,), "int8")
    assert str(api_util.shaped_abstractify(struct)) == "int8[2]"
    with pytest.raises(TypeError, match="'x' of shaped_abstractify is 'a' of type str"):
        api_util.shaped_abstractify("a")


def test_entries_for_each_leaf() -> None:
    call = tree.structure(((1, [2, 3]), {"k": 4}))
    assert api_util.flatten_axes("in_axes", call, (None, 1), kws=True) == [None, 1, 1, 0]
    with pytest.raises(ValueError, match="in_axes"):
        api_util.flatten_axes("in_axes", tree.structure((1, 2)), (0, 1, 2))


def test_donated_leaves() -> None:
    call = tree.structure(((1, [2, 3]), {"k": 4, "l": [5]}))
    assert api_util.donation_vector((1,), ("l",), call) == (False, True, True, False, True)
    assert api_util.donation_vector((0,), (), tree.structure((1, 2)), kws=False) == (True, False)
    assert api_util.rebase_donate_argnums((3, 1), (0, 2)) == (0, 1)
    with pytest.raises(ValueError, match=r"the arguments \[1\] are both donated and static"):
        api_util.rebase_donate_argnums((1,), (1,))


def test_functions_of_some_arguments() -> None:
    def fun(*args: Any) -> Any:
        return args

    partial, values = api_util.argnums_partial(fun, -1, (1, 2, 3))
    assert (partial(9), values) == ((1, 2, 9), (3,))
    with pytest.raises(ValueError, match="the static argument 0 is a ndarray, which has no hash"):
        api_util.argnums_partial(fun, 1, (np.ones(2), 2))
    assert api_util.argnums_partial(fun, 1, ([], 2), require_static_args_hashable=False)[1] == (2,)
    with pytest.raises(ValueError, match=r"dyn_argnums \(3,\) must be positions of the 3 arguments"):
        api_util.argnums_partial(fun, 3, (1, 2, 3))
