"""What made programs slower on accelerators than they need to be, one test for each cause.

The expected count is that of the program written by hand as the accelerator likes it, or what the result alone takes.
"""
from __future__ import annotations

import re
from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from tests.aot.counts import compiled, cycles, kernels, memory, shaped
from xlamini import lax, nn, random
from xlamini.runtime.targets.topology import Target
from xlamini.scipy.linalg import circulant, expm, fiedler_companion, hankel, lu, polar, solve_triangular, toeplitz
from xlamini.scipy.special import betainc, fresnel
from xlamini.scipy.stats import bernoulli, gaussian_kde


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "int8"))
def test_a_wide_result_leaves_narrow_operands_as_they_are(dtype: str, gpu: Target) -> None:
    wide = "int32" if dtype == "int8" else "float32"
    x = shaped(256, 256, dtype=dtype)
    text = compiled(lambda x, y: lax.dot(x, y, preferred_element_type=wide), gpu, x, x).as_text()
    assert " convert(" not in text


@pytest.mark.full
def test_the_gradient_of_softmax_divides_nothing(gpu: Target) -> None:
    """The quotient itself is in two fusions; those of the products would compute further ones over and over."""

    def loss(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, is_causal=True).astype("float32").sum()

    x = shaped(1, 512, 2, 64, dtype="bfloat16")
    text = compiled(xlamini.grad(loss, argnums=(0, 1, 2)), gpu, x, x, x).as_text()
    assert text.count(" divide(") <= 2


def test_attention_by_cudnn_writes_no_products(gpu: Target) -> None:
    """A kernel for the forward pass, one for the gradient, and one that makes the cotangent of a sum."""

    def loss(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").astype("float32").sum()

    x = shaped(1, 1024, 8, 64, dtype="bfloat16")
    gradient = xlamini.grad(loss, argnums=(0, 1, 2))
    assert kernels(gradient, gpu, x, x, x).count("custom-call") == 2
    assert len(kernels(gradient, gpu, x, x, x)) == 3
    assert memory(gradient, gpu, x, x, x) < 2 * 8 * 1024**2


def test_a_rectifier_is_part_of_the_product_before_it(gpu: Target) -> None:
    """As a selection it was a kernel of its own, and so it was after a convolution by cuDNN."""
    x, w = shaped(1024, 512), shaped(512, 512)
    assert kernels(lambda x, w: nn.relu(x @ w + 1), gpu, x, w) == ["fusion"]
    assert kernels(lambda x, w: nn.relu6(x @ w + 1), gpu, x, w) == ["fusion"]


def test_a_rectifier_is_part_of_the_convolution_before_it(gpu: Target) -> None:
    def layer(x: Any, kernel: Any, bias: Any) -> Any:
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return nn.relu(y + bias)

    x, kernel, bias = shaped(8, 28, 28, 64), shaped(3, 3, 64, 64), shaped(64)
    assert kernels(layer, gpu, x, kernel, bias) == ["fusion", "custom-call"]


def test_the_gradient_of_average_pooling_has_no_short_dimensions(tpu: Target) -> None:
    """A TPU pads the last dimension of an array to 128 elements."""

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (4, 4), (4, 4), "VALID")

    x = shaped(512, 512)
    forward = cycles(lambda x: pooled(x) ** 2, tpu, x)
    assert cycles(xlamini.grad(lambda x: (pooled(x) ** 2).sum()), tpu, x) <= 4 * forward


@pytest.mark.parametrize(("function", "count"), ((jnp.sort, 1), (jnp.argsort, 1), (lambda x: jnp.median(x, -1), 2)))
def test_a_sort_moves_its_operands_only(function: Any, count: int, gpu: Target) -> None:
    """One kernel, which sorts floats by themselves and not by integers made of them."""
    assert len(kernels(function, gpu, shaped(256, 1024))) == count
    assert memory(jnp.sort, gpu, shaped(1024, 1024)) < 3.1 * 4 * 1024**2


def test_a_sort_by_several_keys_makes_no_others(tpu: Target) -> None:
    x = shaped(1024)
    assert kernels(lambda x, y: jnp.lexsort((x, y)), tpu, x, x).count("fusion") <= 1


def test_einsum_moves_no_element_out_of_its_row(tpu: Target) -> None:
    x, y = shaped(2, 1024, 1024), shaped(1024, 1024)
    in_order = cycles(lambda x, y: jnp.einsum("bij,jk->bik", x, y), tpu, x, y)
    assert cycles(lambda x, y: jnp.einsum("bij,jk->bki", x, y), tpu, x, y) <= 1.05 * in_order


@pytest.mark.slow
def test_an_associative_scan_copies_no_pairs(gpu: Target) -> None:
    def affine(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    assert len(kernels(lambda x: lax.associative_scan(affine, (x, x)), gpu, shaped(1024, 512))) <= 6


def test_a_triangle_needs_no_mask_in_memory(tpu: Target) -> None:
    """The triangles of a batch are one kernel beside the decomposition."""
    assert kernels(lambda x: jnp.linalg.qr(x)[1], tpu, shaped(8, 64, 64)).count("fusion") == 1


def largest(x: Any, window: tuple[int, ...], strides: tuple[int, ...], padding: str) -> Any:
    return (lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding) ** 2).sum()


@pytest.mark.full
def test_the_gradient_of_max_pooling_pads_nothing_on_a_tpu(tpu: Target) -> None:
    """Padding that the scatter itself skips is no array; JAX's programs give it too."""

    def count(padding: str) -> int:
        gradient = xlamini.grad(lambda x: largest(x, (1, 3, 3, 1), (1, 2, 2, 1), padding))
        return cycles(gradient, tpu, shaped(8, 64, 64, 64))

    assert count("SAME") <= 1.2 * count("VALID")


@pytest.mark.full
def test_max_pooling_over_both_dimensions_of_a_matrix_has_a_gradient_on_a_tpu(tpu: Target) -> None:
    """XLA's scatter needs two dimensions without windows."""
    assert cycles(xlamini.grad(lambda x: largest(x, (3, 3), (2, 2), "SAME")), tpu, shaped(128, 128)) > 0


def test_many_keys_are_made_and_used_in_two_kernels(tpu: Target) -> None:
    """But for the sums of words of the key itself."""

    def drawn(words: Any) -> Any:
        keys = random.split(random.wrap_key_data(words), 256)
        return xlamini.vmap(lambda key: random.bits(key, (64,)))(keys)

    assert kernels(drawn, tpu, shaped(2, dtype="uint32")).count("fusion") <= 4


def test_random_bits_are_not_stored_before_they_are_used(gpu: Target) -> None:
    """The hash is computed in the shape of the result, so that one kernel makes the numbers."""

    def drawn(words: Any) -> Any:
        return random.normal(random.wrap_key_data(words), (256, 512))

    assert kernels(drawn, gpu, shaped(2, dtype="uint32")) == ["fusion"]


def test_a_solution_by_lu_turns_no_factors_on_a_tpu(tpu: Target) -> None:
    """XLA's kernels read the factors by rows, as the decomposition leaves them."""
    text = compiled(jnp.linalg.solve, tpu, shaped(256, 256), shaped(256, 8)).as_text()
    assert "f32[256,256]{0,1" not in text


def test_a_solution_by_lu_turns_no_factors_on_a_gpu(gpu: Target) -> None:
    """Its kernels read and write by columns: only the matrix itself comes by rows."""
    text = compiled(jnp.linalg.solve, gpu, shaped(256, 256), shaped(256, 8)).as_text()
    assert len(re.findall(r"f32\[256,256\]\S* transpose\(", text)) == 1


def test_singular_vectors_that_nobody_asked_for_are_not_computed(gpu: Target) -> None:
    tall = shaped(1024, 64)
    assert memory(lambda x: jnp.linalg.svd(x, full_matrices=False), gpu, tall) < 4 * 1024**2


def test_a_product_over_a_middle_dimension_compiles_without_a_gpu(gpu: Target) -> None:
    """XLA's first tiling does not fit it, and there is no device to try others on."""
    assert kernels(lambda x, y: jnp.tensordot(x, y, (1, 0)), gpu, shaped(8, 96, 600), shaped(96, 64))


def test_identities_of_a_stack_are_one(tpu: Target) -> None:
    """Else each would be compared and multiplied, as a mask."""
    x = shaped(32, 64, 64)
    assert cycles(jnp.linalg.inv, tpu, x) <= 1.02 * cycles(jnp.linalg.solve, tpu, x, x)


def test_the_places_of_nonzero_elements_need_no_count(gpu: Target) -> None:
    """Three kernels rank them, and one fills the result, in which the places lie that no element takes."""
    assert len(kernels(lambda x: jnp.nonzero(x, size=128), gpu, shaped(65536))) <= 5


def test_bincount_compares_each_number_twice(tpu: Target) -> None:
    """With 0 to clip it, and with 0 again, as the index that it is."""
    text = compiled(lambda x: jnp.bincount(x, length=256), tpu, shaped(65536, dtype="int32")).as_text()
    assert len(re.findall(r"s32\[65536\]\S* select\(", text)) <= 1


def test_the_matrix_exponential_solves_once(gpu: Target) -> None:
    """The branches by degree give what is solved, so that the program has one decomposition and not three."""
    assert compiled(expm, gpu, shaped(64, 64)).as_text().count("cusolver_getrf_ffi") == 1


def test_the_matrix_exponential_adds_its_halves_once(gpu: Target) -> None:
    """Sums inside a branch would keep the parts of two split products alive, each four matrices."""
    assert memory(expm, gpu, shaped(512, 512)) <= 9.1 * 4 * 512**2


def test_an_inverse_gathers_no_rows_of_the_identity(target: Target) -> None:
    """They are a comparison with the permutation, which the decomposition itself may gather."""
    inverse, decomposition = (compiled(f, target, shaped(8, 64, 64)).as_text() for f in (jnp.linalg.inv, lax.linalg.lu))
    assert inverse.count(" gather(") <= decomposition.count(" gather(")


def test_few_keys_of_each_of_many_are_made_apart(tpu: Target) -> None:
    """Side by side they would be copied to another tiling for whoever takes one of them."""

    def drawn(words: Any) -> Any:
        keys = random.wrap_key_data(words)
        return xlamini.vmap(lambda key: random.bits(random.split(key, 3)[1]))(keys)

    x = shaped(65536, 2, dtype="uint32")
    assert "u32[65536,3" not in compiled(drawn, tpu, x).as_text()


def set_rows(x: Any, rows: Any, updates: Any) -> Any:
    return xlamini.grad(lambda x, u: (x.at[rows].set(u) ** 2).sum(), (0, 1))(x, updates)


def test_rows_that_are_set_are_numbered_as_rows(gpu: Target) -> None:
    """Which of them wins where two are set in one place is told by a number for each, not for each of its elements."""
    args = shaped(512, 256), shaped(384, dtype="int32"), shaped(384, 256)
    text = compiled(set_rows, gpu, *args).as_text()
    assert "u32[512]" in text and "u32[384]" in text
    assert not re.search(r"u32\[(512|384),256", text)


def test_masks_of_rows_that_are_set_take_no_memory(gpu: Target) -> None:
    """Beside arguments and results there are the numbers, and the rows that the gradient begins with."""
    args = shaped(4096, 512), shaped(4096, dtype="int32"), shaped(4096, 512)
    assert memory(set_rows, gpu, *args) <= 5.1 * 4 * 4096 * 512


def test_the_kernels_gradient_of_a_transposed_convolution_copies_nothing(gpu: Target) -> None:
    """A convolution, and the reversal of its result. With the cotangent as the kernel, both were padded and copied."""

    def gradient(x: Any, kernel: Any, ct: Any) -> Any:
        return xlamini.vjp(lambda k: lax.conv_transpose(x, k, (2, 2), "SAME"), kernel)[1](ct)

    given = shaped(8, 16, 16, 64), shaped(4, 4, 64, 32), shaped(8, 32, 32, 32)
    assert len(kernels(gradient, gpu, *given)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("function", (lax.cummax, lax.cumprod))
def test_running_results_and_their_gradient_share_one_tree(function: Any, gpu: Target) -> None:
    """That of the derivatives has the results in it: a window beside it would compute them again, and store them."""
    gradient = xlamini.grad(lambda x: (function(x) ** 2).sum())
    assert memory(gradient, gpu, shaped(512, 512)) <= 3.7 * 4 * 512**2


def test_rows_that_are_joined_or_selected_stay_together(gpu: Target) -> None:
    """A slice for each would be a copy, or a step of a chain."""
    x, holds = shaped(64, 256), shaped(64, 256, dtype="bool")
    assert kernels(lambda x: lax.stack(x, 1), gpu, x) == ["fusion"]
    assert len(kernels(lambda holds, x: jnp.select(holds, x, 1.0), gpu, holds, x)) <= 3


def test_the_gradient_of_a_product_takes_it_from_its_halves(gpu: Target) -> None:
    """A reduction beside them would be one kernel more."""
    assert len(kernels(xlamini.grad(lambda x: jnp.prod(x) ** 2), gpu, shaped(4096))) <= 4


def test_a_spread_without_nans_stores_one_array_without_them(gpu: Target) -> None:
    """The distances from the mean, which three sums read, one of which is in range; a variance stores none."""
    assert len(kernels(jnp.nanstd, gpu, shaped(4096))) <= 4
    assert memory(jnp.nanstd, gpu, shaped(4096)) <= 2.1 * 4 * 4096
    assert memory(jnp.nanvar, gpu, shaped(4096)) <= 1.1 * 4 * 4096


def test_the_ends_of_a_range_are_joined_and_not_written_over(gpu: Target) -> None:
    x = shaped(4096)
    assert len(kernels(jnp.geomspace, gpu, x, x)) == 1
    gradient = xlamini.grad(lambda x, y: (jnp.geomspace(x, y) ** 2).sum(), (0, 1))
    assert len(kernels(gradient, gpu, x, x)) <= 3


@pytest.mark.parametrize("function", (jnp.isfinite, jnp.isinf, jnp.isposinf, jnp.isneginf))
def test_what_holds_for_all_integers_does_not_need_them(function: Any, gpu: Target) -> None:
    assert memory(function, gpu, shaped(1024, 1024, dtype="int32")) == 1024**2


def test_numbers_that_are_given_are_constants_of_the_program(gpu: Target) -> None:
    """As arguments they would be divided by, and have a kernel for their logarithm."""
    x = shaped(4096)
    assert memory(jnp.gradient, gpu, x) == 2 * 4 * 4096
    assert len(kernels(jnp.logspace, gpu, x, x)) == 1
    gradient = xlamini.grad(lambda x, y: (jnp.logspace(x, y, 10) ** 2).sum(), (0, 1))
    assert kernels(gradient, gpu, x, x).count("fusion") <= 3


def test_the_gradient_of_singular_values_multiplies_once(gpu: Target) -> None:
    """The decomposition, the matrix that it takes by columns, the vectors scaled, and their product."""
    assert len(kernels(xlamini.grad(lambda x: jnp.linalg.svdvals(x).sum()), gpu, shaped(4, 64, 64))) <= 4


def test_the_gradient_of_qr_has_no_product_of_its_own_for_r(gpu: Target) -> None:
    """Else XLA makes one wide product of two, which take memory together."""
    gradient = xlamini.grad(lambda x: sum((y**2).sum() for y in jnp.linalg.qr(x)))
    assert len(kernels(gradient, gpu, shaped(16, 64, 64))) <= 11
    assert memory(gradient, gpu, shaped(16, 64, 64)) <= 6.1 * 4 * 16 * 64 * 64


def test_the_gradient_of_a_pseudo_inverse_has_no_square_of_the_longer_side(gpu: Target) -> None:
    """But for that of the decomposition itself, four times the matrix."""
    assert memory(xlamini.grad(lambda x: (jnp.linalg.pinv(x) ** 2).sum()), gpu, shaped(32, 128)) <= 8 * 4 * 32 * 128


@pytest.mark.parametrize("function", (jnp.polyder, jnp.polyint))
def test_the_powers_of_a_polynomial_are_counted_where_they_are_used(function: Any, gpu: Target) -> None:
    """An array of them would be an argument of the program."""
    assert memory(function, gpu, shaped(4096)) <= 2.01 * 4 * 4096


def test_the_gradient_of_a_real_transform_is_of_half_of_the_numbers(gpu: Target) -> None:
    gradient = xlamini.grad(lambda x: (abs(jnp.fft.rfft(x)) ** 2).sum())
    assert memory(gradient, gpu, shaped(512, 1024)) <= 3.1 * 4 * 512 * 1024


def test_fiedlers_companion_and_its_gradient_write_no_matrix_but_the_result(gpu: Target) -> None:
    """It was five scatters of diagonals, each with an array of places."""
    x = shaped(65)
    assert kernels(fiedler_companion, gpu, x) == ["fusion"]
    assert memory(xlamini.grad(lambda x: (fiedler_companion(x) ** 2).sum()), gpu, x) <= 8 * 4 * 65


def test_a_roll_by_a_traced_shift_is_a_slice(target: Target) -> None:
    """A TPU gathers element by element, and the gradient of a gather is a scatter."""
    x, shift = shaped(64, 64), shaped(dtype="int32")
    gradient = xlamini.grad(lambda x, shift: (jnp.roll(x, shift, 1) ** 2).sum())
    for function in (lambda x, shift: jnp.roll(x, shift, 1), gradient):
        assert not re.search(r" (gather|scatter)\(", compiled(function, target, x, shift).as_text())


def test_the_median_of_integers_looks_for_no_nans(gpu: Target) -> None:
    """A cast, a sort, and the two elements in the middle."""
    x = shaped(64, 1024, dtype="int32")
    assert len(kernels(lambda x: jnp.nanmedian(x, 1), gpu, x)) <= 3
    assert len(kernels(lambda x: jnp.nanquantile(x, 0.3, 1), gpu, x)) <= 3


@pytest.mark.parametrize("function", (jnp.nanmedian, lambda x, axis: jnp.nanquantile(x, 0.3, axis)))
def test_one_element_of_each_row_is_gathered_by_a_row_of_indices(function: Any, tpu: Target) -> None:
    """With a dimension of size 1 for it, a TPU laid the indices out anew."""
    text = compiled(lambda x: function(x, 1), tpu, shaped(64, 1024)).as_text()
    assert "s32[64,1,1]" not in text


def test_fresnels_integrals_and_their_gradient_are_one_kernel(gpu: Target) -> None:
    """With terms that only float64 can tell apart, XLA's limit of a fusion was reached."""
    gradient = xlamini.grad(lambda x: sum((y**2).sum() for y in fresnel(x)))
    assert kernels(gradient, gpu, shaped(4096)) == ["fusion"]


def test_the_loop_of_betainc_holds_six_arrays(gpu: Target) -> None:
    """Three that it sums, both parameters, and one for x and 1 - x; arguments and result are four."""
    x = shaped(512, 512)
    assert memory(betainc, gpu, x, x, x) <= 9.1 * 4 * 512**2


def test_steps_of_the_polar_decomposition_hold_nothing_of_those_before(gpu: Target) -> None:
    """Three matrices for the argument and results, three for a step by QR, and a vector."""
    assert memory(polar, gpu, shaped(64, 64)) <= 6.2 * 4 * 64**2


@pytest.mark.parametrize("function", (circulant, hankel, toeplitz))
def test_a_matrix_with_equal_diagonals_counts_its_places(function: Any, gpu: Target) -> None:
    """An array of all places would be an argument of the program, as large as the result."""
    x = shaped(64)
    assert memory(function, gpu, x) <= 4 * (64**2 + 100)
    assert memory(xlamini.grad(lambda x: (function(x) ** 2).sum()), gpu, x) <= 4 * 5 * 64


def test_the_gradient_of_lu_holds_one_lower_factor(gpu: Target) -> None:
    """With its diagonal it can be solved with too: seven matrices, argument and result among them, and the pivots."""
    gradient = xlamini.grad(lambda x: sum((y**2).sum() for y in lu(x)))
    assert memory(gradient, gpu, shaped(64, 64)) <= 7.1 * 4 * 64**2


def test_a_kernel_density_holds_no_distances(gpu: Target) -> None:
    """The sum over the samples is over rows, which XLA fuses with what it sums; sums of columns were stored before."""
    density = lambda samples, points: gaussian_kde(samples)(points)
    assert memory(density, gpu, shaped(2, 128), shaped(2, 64)) <= 2.5 * 4 * 2 * (128 + 64 + 64)


def test_the_gradient_of_steps_reads_nothing(gpu: Target) -> None:
    """A zero made by multiplication has a derivative, of which XLA cannot know that it is zero."""
    p = shaped(4096)
    gradient = xlamini.grad(lambda k, p: (bernoulli.ppf(k, p) ** 2).sum(), argnums=1)
    assert memory(gradient, gpu, shaped(4096, dtype="int32"), p) <= 4 * 4096


def test_the_gradient_of_a_running_maximum_keeps_few_levels(gpu: Target) -> None:
    """Its derivative compares the operands; by the maximum itself it had 23 kernels, as XLA fused no maxima."""
    gradient = xlamini.grad(lambda x: (lax.cummax(x, 1) ** 2).sum())
    assert len(kernels(gradient, gpu, shaped(64, 256))) <= 16


def test_the_gradient_of_nanmedian_moves_two_elements_of_each_row(gpu: Target) -> None:
    """As that of a sort it would move all of them, after a scatter for each of the two.

    One kernel is for medians between a number and an infinity.
    """
    for axis, count in ((0, 7), (1, 6)):
        gradient = xlamini.grad(lambda x, axis=axis: (jnp.nanmedian(x, axis) ** 2).sum())
        assert len(kernels(gradient, gpu, shaped(256, 128))) <= count


def test_the_gradient_of_a_wide_svd_frees_the_vectors_that_nobody_asked_for(gpu: Target) -> None:
    """The kernel for small matrices gives all of V; sliced before its transposition it was read until the end."""
    gradient = xlamini.grad(lambda x: sum((y**2).sum() for y in jnp.linalg.svd(x, full_matrices=False)))
    assert memory(gradient, gpu, shaped(32, 96)) <= 6 * 4 * 32 * 96


def test_the_gradient_of_svd_turns_one_matrix(gpu: Target) -> None:
    """Both kinds of vectors read the same transposition, and only complex ones have phases.

    One kernel finds the largest value, beside which others count as equal.
    """
    gradient = xlamini.grad(lambda x: sum((y**2).sum() for y in jnp.linalg.svd(x)))
    x = shaped(8, 32, 32)
    assert len(kernels(gradient, gpu, x)) <= 9
    assert memory(gradient, gpu, x) <= 7.1 * 4 * 8 * 32**2


def test_rows_along_an_axis_are_read_whole(tpu: Target) -> None:
    """Indices of size 1 in an axis read all of it: single elements took up to six times the cycles of rows."""
    x, i = shaped(8, 256, 128), shaped(8, 32, 1, dtype="int32")
    along, by_rows = (
        lambda x, i: (jnp.take_along_axis(x, i, axis=1, mode="clip") ** 2).sum(),
        lambda x, i: (xlamini.vmap(lambda x, i: x.at[i].get(mode="clip"))(x, i[..., 0]) ** 2).sum(),
    )
    assert cycles(along, tpu, x, i) <= 1.02 * cycles(by_rows, tpu, x, i)
    assert cycles(xlamini.grad(along), tpu, x, i) <= 1.02 * cycles(xlamini.grad(by_rows), tpu, x, i)


def test_a_loop_keeps_factors_before_their_broadcast(gpu: Target) -> None:
    """The gradient needs a vector and the carry of each turn, not the vector broadcast to a matrix."""

    def loss(xs: Any, c: Any) -> Any:
        return lax.scan(lambda c, x: (c * jnp.tanh(x)[:, None], None), c, xs)[0].sum()

    xs, c = shaped(64, 128), shaped(128, 128)
    assert memory(xlamini.grad(loss), gpu, xs, c) <= 1.1 * 4 * (64 * 128**2 + 3 * 128**2 + 4 * 64 * 128)


def test_a_triangle_and_a_triangular_solve_share_a_mask(tpu: Target) -> None:
    def loss(a: Any, b: Any) -> Any:
        return (solve_triangular(jnp.tril(a), b, lower=True) ** 2).sum()

    gradient = xlamini.grad(loss, argnums=(0, 1))
    assert kernels(gradient, tpu, shaped(64, 64, 64), shaped(64, 64, 8)).count("fusion") <= 6


def test_the_gradient_of_attention_copies_nothing_twice(gpu: Target) -> None:
    """The product with the values takes them first; the other order had one kernel more, a transposition."""
    x = shaped(1, 256, 2, 64)
    gradient = xlamini.grad(lambda *a: (nn.dot_product_attention(*a) ** 2).sum(), argnums=(0, 1, 2))
    assert len(kernels(gradient, gpu, x, x, x)) <= 16
