"""What XLA's compiler for the CPU is told of a program: a library for convolutions, and which emitters not to take.

The library is YNNPACK or Eigen. XLA takes YNNPACK wherever it can, and one option takes Eigen for a whole program.
YNNPACK is the faster for few features. Eigen divides any convolution among the threads, where YNNPACK of jaxlib 0.10
divides only columns of images and features, by 64 each; and it is the faster for gradients of kernels in all versions.
What XLA fuses with a sum over its results, such as a network that ends in a mean, stays YNNPACK's, which takes as long.

Milliseconds, YNNPACK / Eigen, two threads, jaxlib 0.10.2: 3×3 of 8×64×56×56 to 64 features 20 / 11, the kernel's
gradient 58 / 15; of 8×512×7×7 to 512 features 14 / 10; of 1×3×224×224 to 64 features 1.3 / 2.5. jaxlib 0.12: 8.6 / 9.1,
28 / 13, 19 / 9.1, 2.2 / 3.2.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import Equation, Jaxpr, Shape, once, subjaxprs
from xlamini.core.program.form import Platform
from xlamini.primitives.shape.shape import rev_p
from xlamini.primitives.windows.conv_numbers import space_of
from xlamini.primitives.windows.convolution import conv_general_dilated_p
from xlamini.runtime.versions import EIGEN_CONVOLUTIONS, FAST_ON_CPU, YNNPACK_SPLITS_IMAGES

_CPU = Platform("cpu")
_FLOATS = ("float32", "bfloat16", "float16")
"""The dtypes that both libraries compute; XLA converts the narrow ones to float32."""


def cpu_options(jaxpr: Jaxpr, compiles_fast: bool) -> dict[str, Any]:
    """The options of XLA for this program on the CPU, where they are not the defaults."""
    fast = FAST_ON_CPU if compiles_fast and not _reverses(jaxpr) else {}
    return fast | EIGEN_CONVOLUTIONS if prefers_eigen(jaxpr) else fast


@once
def _reverses(jaxpr: Jaxpr) -> bool:
    """Whether it reverses an array; the code that XLA's older emitters write for a chain of these doubles with each."""
    return any(eqn.primitive is rev_p or any(map(_reverses, subjaxprs(eqn))) for eqn in jaxpr.eqns)


def prefers_eigen(jaxpr: Jaxpr) -> bool:
    """Whether the convolutions of a program take less time by Eigen; those in a loop's body count once."""
    return _gain(jaxpr) > 0


@once
def _gain(jaxpr: Jaxpr) -> float:
    """The time that Eigen saves, in products: half of them where it is the faster, a negative number where not."""
    convolutions = [_gain_of(eqn) for eqn in jaxpr.eqns if eqn.primitive is conv_general_dilated_p]
    bodies = [inner for eqn in jaxpr.eqns if eqn.primitive.higher_order for inner in subjaxprs(eqn)]
    return sum(convolutions) + sum(map(_gain, bodies))


def _gain_of(eqn: Equation) -> float:
    if eqn.outvars[0].aval.dtype.name not in _FLOATS:
        return -math.inf  # Eigen has no integers and no float64: XLA's loops take ten times as long
    if not _is_for_either(eqn):
        return 0
    lhs, rhs = (v.aval for v in eqn.invars)
    products = eqn.primitive.cost(lhs, rhs, **eqn.params).flops // 2
    return products * _saved(eqn, products)


def _is_for_either(eqn: Equation) -> bool:
    """Whether YNNPACK takes it: windows of two dimensions; what is dilated or grouped by batch is not for it.

    Volumes are computed as images, with planes as features (`cpu/depth_as_features.py`).
    What has another form than a convolution is none of the libraries'.
    """
    params, window = eqn.params, _window(eqn)
    plain = params["batch_group_count"] == 1 and all(d == 1 for d in params["lhs_dilation"])
    overlap = any(n > stride for n, stride in zip(window, params["window_strides"], strict=True))
    taken = len(window) in (2, 3) and plain and overlap
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    return taken and conv_general_dilated_p.is_left_to_xla(_CPU, avals, outs, params)


def _saved(eqn: Equation, products: int) -> float:
    """The part of YNNPACK's time that Eigen saves, by the features that are contracted and those of the result."""
    numbers, rhs = eqn.params["dimension_numbers"], eqn.invars[1].aval
    contracted = rhs.shape[numbers.rhs_spec[1]] * math.prod(_window(eqn)[:-2])
    outputs = rhs.shape[numbers.rhs_spec[0]] // eqn.params["feature_group_count"]
    if math.prod(space_of(eqn.outvars[0].aval, numbers.out_spec)) < math.prod(_window(eqn)):  # a kernel's gradient
        return 0.5 if contracted >= 2 and outputs >= 32 else -1
    if not YNNPACK_SPLITS_IMAGES:
        return 0.4 if contracted >= 8 and outputs >= 32 else -1
    if products < 2**28 or min(contracted, outputs) < 32:
        return -1
    return 0.4 if min(contracted, outputs) >= 96 else 0


def _window(eqn: Equation) -> Shape:
    return space_of(eqn.invars[1].aval, eqn.params["dimension_numbers"].rhs_spec)
