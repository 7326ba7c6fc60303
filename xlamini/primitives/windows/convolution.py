"""conv_general_dilated: a kernel slid over an array; all convolutions are made of it.

Both transposes are convolutions again: of the cotangent with the kernel turned about, and of the operand with the
cotangent as kernel. Batches become features, or further groups of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    check_user_dtype,
    is_linear,
    is_zero,
    tangent_aval,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.facet import Sharding
from xlamini.lowering.gpu import is_gpu_platform
from xlamini.primitives.base.dtype_kinds import BOOL, COMPLEX, FLOAT, INTEGER, kind_of
from xlamini.primitives.base.elementwise import like_dtypes
from xlamini.primitives.base.out_sharding import in_sharding
from xlamini.primitives.base.precision import CanonicalPrecision, canonical_precision, precision_config
from xlamini.primitives.base.tangent_ops import add_tangents
from xlamini.primitives.elementwise.arithmetic import add, sub
from xlamini.primitives.elementwise.complex import complex as complex_, imag, real
from xlamini.primitives.forms.cpu.windows import (
    cropped_signals,
    depth_as_features,
    direct,
    float64_forms,
    group_by_group,
    im2col,
    joint_products,
    matmul_col2im,
    narrow_floats,
    patchify,
    patchify_gradient,
    polyphase,
    toeplitz,
    transposed_patchify,
)
from xlamini.primitives.forms.cpu.windows.choice import Choice, choose, form_by_choice
from xlamini.primitives.windows.conv_batching import batched
from xlamini.primitives.windows.conv_checks import check_operands
from xlamini.primitives.windows.conv_layouts import needs_features_last, with_features_last
from xlamini.primitives.windows.conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    numbers_for,
    placed,
    space_of,
)
from xlamini.primitives.windows.conv_transposes import kernel_cotangent, operand_cotangent
from xlamini.primitives.windows.geometry import Pads, as_numbers, as_pads, dilated, pads_attribute, window_counts
from xlamini.primitives.windows.integer_products import windows_times_kernel
from xlamini.runtime import Array


@api_boundary
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The kernel `rhs` slid over `lhs`: sums of products over a window and the input features, as in neural networks.

    `lhs` has batch, features and n spatial dimensions, `rhs` output features, input features and the same spatial
    ones; `dimension_numbers` (three strings such as `("NHWC", "HWIO", "NHWC")`, by default NCHW, OIHW, NCHW) says in
    which order. `window_strides` and the dilations have n numbers, `padding` n pairs, or is "SAME", "SAME_LOWER" or
    "VALID". `feature_group_count` groups of features are convolved each with its part of the kernel;
    `batch_group_count` does so with groups of the batch. Both operands have one dtype; the result has it too, or
    `preferred_element_type`. Raises TypeError for dtypes, ShapeError or ValueError for shapes that do not fit.

    >>> x, kernel = xlamini.numpy.ones((1, 1, 4)), xlamini.numpy.ones((1, 1, 3))
    >>> conv_general_dilated(x, kernel, (1,), "SAME")
    Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    if out_sharding is not None:
        sides = lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count
        options = *sides, precision, preferred_element_type
        return in_sharding(out_sharding, conv_general_dilated, lhs, rhs, window_strides, padding, *options)
    name = "conv_general_dilated"
    lhs, rhs = like_dtypes((lhs, rhs))
    a, b = aval_of(lhs), aval_of(rhs)
    numbers = numbers_for(name, a.shape, b.shape, dimension_numbers)
    count = a.ndim - 2
    strides = as_numbers(name, "window_strides", window_strides, 1, count)
    base = as_numbers(name, "lhs_dilation", lhs_dilation, 1, count)
    holes = as_numbers(name, "rhs_dilation", rhs_dilation, 1, count)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=_pads(name, padding, a, b, numbers, strides, base, holes),
        lhs_dilation=base,
        rhs_dilation=holes,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision, name),
        preferred_element_type=_element_type(name, preferred_element_type),
    )


def _workspace(platform: str, avals: Avals, outs: Avals, /, **params: Any) -> int:
    """On the CPU operands and results that do not have their features last are copied."""
    if platform != "cpu":
        return 0
    ndim, numbers = outs[0].ndim, params["dimension_numbers"]
    space = tuple(range(1, ndim - 1))
    features_last = (0, ndim - 1, *space), (ndim - 1, ndim - 2, *range(ndim - 2)), (0, ndim - 1, *space)
    pairs = zip((*avals, *outs), numbers, features_last, strict=True)
    return sum(aval.nbytes for aval, spec, last in pairs if tuple(spec) != last)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    space = range(len(lhs_spec) - 2)
    one_group = params["feature_group_count"] == params["batch_group_count"] == 1
    features = "features" if one_group else None
    kernel = [features if d == rhs_spec[0] else None for d in range(len(rhs_spec))]
    lhs, out = placed(["batch", None, *space], lhs_spec), placed(["batch", features, *space], out_spec)
    return Factors([list(lhs), kernel], [list(out)])


class ConvGeneralDilated(Primitive):
    name = "conv_general_dilated"
    sharding: Sharding = Sharding(factors=_factors)
    memory: Memory = Memory(workspace=_workspace)

    def shape_rule(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        *,
        window_strides: Shape,
        padding: Pads,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        precision: CanonicalPrecision,
        preferred_element_type: Any,
    ) -> ShapedArray:
        groups = (feature_group_count, batch_group_count)
        sides = (lhs_dilation, rhs_dilation)
        check_operands(self.name, lhs, rhs, dimension_numbers, window_strides, padding, *sides, groups)
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        sizes, window = space_of(lhs, lhs_spec), space_of(rhs, rhs_spec)
        space = window_counts(sizes, window, window_strides, padding, *sides)
        shape = (lhs.shape[lhs_spec[0]] // batch_group_count, rhs.shape[rhs_spec[0]], *space)
        dtype = _result_dtype(self.name, lhs, rhs, preferred_element_type)
        return ShapedArray(placed(shape, out_spec), dtype, lhs.weak_type and rhs.weak_type)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (lhs, rhs), (lhs_dot, rhs_dot) = primals, tangents
        out = self.bind(lhs, rhs, **params)
        nothing = Zero(tangent_aval(aval_of(out)))
        left = nothing if is_zero(lhs_dot) else self.bind(lhs_dot, rhs, **params)
        right = nothing if is_zero(rhs_dot) else self.bind(lhs, rhs_dot, **params)
        return out, add_tangents(left, right)

    def transpose(self, ct: Any, lhs: Any, rhs: Any, **params: Any) -> Values:
        if is_linear(lhs):
            return [operand_cotangent(self.bind, ct, lhs.aval, rhs, **params), None]
        return [None, kernel_cotangent(self.bind, ct, lhs, rhs.aval, **params)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return batched(self.bind, axis.size, operands, dims, **params)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        kind = kind_of(avals[0].dtype)
        if kind is COMPLEX:
            return Form(partial(self._of_parts, params))
        if kind in INTEGER and is_gpu_platform(platform.name):
            return Form(partial(windows_times_kernel, self.bind, params))
        return form_by_choice(_CHOICES, self, platform, avals, outs, params)

    def is_left_to_xla(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> bool:
        """Whether XLA computes it as a convolution, of these operands or of others."""
        chosen = choose(_CHOICES, platform, avals, outs, params)
        return chosen is None or chosen.uses_xla

    def lower(
        self,
        ctx: Any,
        lhs: Any,
        rhs: Any,
        *,
        window_strides: Shape,
        padding: Pads,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        precision: CanonicalPrecision,
        **_: Any,
    ) -> Any:
        return ctx.op(
            "stablehlo.convolution",
            lhs,
            rhs,
            window_strides=window_strides,
            padding=pads_attribute(padding),
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=_numbers_attribute(dimension_numbers),
            feature_group_count=f"{feature_group_count} : i64",
            batch_group_count=f"{batch_group_count} : i64",
            precision_config=precision_config(precision),
        )

    def _of_parts(self, params: Params, x: Any, y: Any) -> Any:
        """A complex convolution as three convolutions of real numbers (Gauss)."""
        wanted = params["preferred_element_type"]
        part = None if wanted is None else np.zeros((), wanted).real.dtype
        params = {**params, "preferred_element_type": part}
        a, b, c, d = real(x), imag(x), real(y), imag(y)
        first = self.bind(add(a, b), c, **params)
        second = self.bind(a, sub(d, c), **params)
        third = self.bind(b, add(c, d), **params)
        return complex_(sub(first, third), add(first, second))

    def shown_params(self, params: Params) -> Params:
        return dict(sorted({**params, "out_sharding": None}.items()))

    def cost(self, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> Cost:
        """A product and a sum for each tap of the kernel at each output.

        Along a dimension any two of output, input and tap give the third, so there are as many products as pairs of the
        two that are fewest. The holes of a dilated operand and the margins of a full convolution are thus not counted,
        and each derivative of a convolution costs what it costs.
        """
        out = self.shape_rule(lhs, rhs, **params)
        ins, taps, outs = _shapes((lhs, rhs, out), params["dimension_numbers"])
        pairs = [math.prod(sorted(sizes)[:2]) for sizes in zip(outs[2:], ins[2:], taps[2:], strict=True)]
        products = outs[0] * outs[1] * taps[1] * math.prod(pairs)
        return Cost(2 * products, lhs.nbytes + rhs.nbytes + out.nbytes)


conv_general_dilated_p: Final = ConvGeneralDilated()

_again = conv_general_dilated_p.bind
_CHOICES = (
    Choice(im2col.fits, partial(im2col.im2col, _again), if_finite=True),
    Choice(toeplitz.fits, partial(toeplitz.toeplitz, _again), if_finite=True),
    Choice(patchify.fits, patchify.patchify, noinline=True),
    Choice(patchify_gradient.fits, patchify_gradient.patchify_gradient, noinline=True),
    Choice(transposed_patchify.fits, transposed_patchify.transposed_patchify, noinline=True),
    Choice(direct.fits, direct.direct, noinline=True),
    Choice(matmul_col2im.fits, matmul_col2im.matmul_col2im, noinline=True, on_one_device=True),
    Choice(joint_products.fits, joint_products.joint_products, noinline=True),
    Choice(narrow_floats.fits, partial(narrow_floats.in_float32, _again)),
    Choice(group_by_group.fits, partial(group_by_group.group_by_group, _again)),
    Choice(polyphase.fits, partial(polyphase.polyphase, _again)),
    Choice(float64_forms.is_vector, partial(float64_forms.as_row, _again)),
    Choice(float64_forms.grows, partial(float64_forms.pad_first, _again)),
    Choice(depth_as_features.fits, partial(depth_as_features.depth_as_features, _again)),
    Choice(cropped_signals.fits, partial(cropped_signals.crop_first, _again)),
    Choice(needs_features_last, partial(with_features_last, _again)),
)


# --- helpers


def _shapes(avals: Avals, numbers: ConvDimensionNumbers) -> list[list[int]]:
    """The shapes of lhs, rhs and result, in the order batch, features, space."""
    return [[aval.shape[d] for d in spec] for aval, spec in zip(avals, numbers, strict=True)]


def _pads(
    name: str,
    padding: Any,
    lhs: ShapedArray,
    rhs: ShapedArray,
    numbers: ConvDimensionNumbers,
    strides: Shape,
    base: Shape,
    holes: Shape,
) -> Pads:
    if not isinstance(padding, str):
        return as_pads(name, padding, (), (), ())
    check_operands(name, lhs, rhs, numbers, strides, None, base, holes)
    if any(d != 1 for d in base):
        raise ValueError(
            f"{name}: padding {padding!r} says nothing of an lhs that is dilated by {base}; give pairs (before, "
            "after), or use conv_transpose"
        )
    window = dilated([rhs.shape[d] for d in numbers.rhs_spec[2:]], holes)
    return as_pads(name, padding, [lhs.shape[d] for d in numbers.lhs_spec[2:]], window, strides)


def _element_type(name: str, dtype: Any) -> Any:
    return None if dtype is None else check_user_dtype(dtype, name)


_WHOLE = BOOL | INTEGER
_RESULTS = {**dict.fromkeys(_WHOLE, _WHOLE | FLOAT), FLOAT: FLOAT, COMPLEX: COMPLEX}
"""The kinds of results that operands of each kind may be asked for."""


def _result_dtype(name: str, lhs: ShapedArray, rhs: ShapedArray, wanted: Any) -> Any:
    if lhs.dtype != rhs.dtype:
        raise TypeError(
            f"{name}: both operands must have one dtype, got {lhs.dtype} and {rhs.dtype}; convert one with .astype"
        )
    if wanted is None or wanted == lhs.dtype:
        return lhs.dtype
    given, kind = kind_of(lhs.dtype), kind_of(wanted)
    if kind not in _RESULTS.get(given, ()):
        raise TypeError(
            f"{name}: preferred_element_type {wanted} does not fit operands of {lhs.dtype}; integers give integers or "
            "floats, floats give floats, complex numbers complex ones"
        )
    if (given in FLOAT) == (kind in FLOAT) and wanted.itemsize < lhs.dtype.itemsize:
        raise TypeError(
            f"{name}: preferred_element_type {wanted} is narrower than {lhs.dtype}, the operands' dtype; convert the "
            "result with .astype"
        )
    return wanted


def _numbers_attribute(numbers: ConvDimensionNumbers) -> str:
    def text(spec: Shape, first: str, second: str) -> str:
        letters = [first, second, *map(str, range(len(spec) - 2))]
        return ", ".join(letters[spec.index(d)] for d in range(len(spec)))

    lhs, rhs, out = text(numbers.lhs_spec, *"bf"), text(numbers.rhs_spec, *"oi"), text(numbers.out_spec, *"bf")
    return f"#stablehlo.conv<[{lhs}]x[{rhs}]->[{out}]>"
