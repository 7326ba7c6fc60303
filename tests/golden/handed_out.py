"""Calls whose programs must have JAX's primitives and params, written for any library that has JAX's names.

A call is an expression of the arguments below; its function takes those that it names. `grad` and `vmap` stand for the
derivative of a call's sum and for the call on one more dimension.
"""
from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

ARGUMENTS: dict[str, Any] = {
    "x": np.array([0.3, 0.5, 0.9], np.float32),
    "y": np.array([0.2, 0.7, 0.4], np.float32),
    "s": np.float32(0.5),
    "m": np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]], np.float32),
    "w": np.array([[0.1, 0.2, 0.3], [0.6, 0.5, 0.4]], np.float32),
    "t": np.linspace(0.1, 1.2, 24, dtype=np.float32).reshape(1, 4, 3, 2),
    "i": np.array([2, 0, 1], np.int32),
    "j": np.array([3, 5, 7], np.int32),
    "b": np.array([True, False, True]),
    "z": np.array([1 + 1j, 2.0, -1j], np.complex64),
    "k": np.array([0, 42], np.uint32),
}
MODULES = {
    **{"jnp": "numpy", "lax": "lax", "nn": "nn", "random": "random", "linalg": "numpy.linalg", "fft": "numpy.fft"},
    **{"lax_linalg": "lax.linalg", "special": "scipy.special", "scipy_linalg": "scipy.linalg"},
}


def _each(template: str, names: str) -> list[str]:
    return [template.format(name) for name in names.split()]


ELEMENTWISE = [
    *_each("jnp.{}(x)", "sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arctanh exp exp2 expm1 log log2 log10"),
    *_each("jnp.{}(x)", "log1p sqrt cbrt square reciprocal negative abs sign floor ceil rint trunc round sinc i0 deg2rad"),
    *_each("jnp.{}(x)", "isnan isinf isfinite signbit nan_to_num positive spacing frexp modf real imag angle conj"),
    *_each("jnp.{}(x, y)", "add subtract multiply divide power maximum minimum arctan2 hypot logaddexp logaddexp2 fmod"),
    *_each("jnp.{}(x, y)", "floor_divide remainder copysign nextafter heaviside fmax fmin greater less equal not_equal"),
    *_each("jnp.{}(i, j)", "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide remainder"),
    *_each("jnp.{}(i)", "invert bitwise_count float32 bool_ abs sign"),
    *_each("lax.{}(x)", "sin cos tan tanh exp exp2 expm1 log log1p sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma"),
    *_each("lax.{}(x)", "digamma floor ceil round sign abs neg is_finite square asin acos atan bessel_i0e bessel_i1e"),
    *_each("lax.{}(x, y)", "add sub mul div rem max min pow atan2 nextafter igamma igammac lt le gt ge eq ne"),
    *_each("jnp.{}(b, b)", "logical_and logical_or logical_xor"),
    *["jnp.logical_not(b)", "jnp.where(b, x, y)", "jnp.where(b, x, 0.0)", "jnp.clip(x, 0.4, 0.8)", "jnp.clip(x, min=0.4)"],
    *["lax.clamp(0.4, x, 0.8)", "lax.select(b, x, y)", "lax.integer_pow(x, 3)", "x ** 2", "x ** 3.5", "2 ** x", "x @ y"],
    *["x * 2", "x + 1", "1 / x", "x // y", "x % y", "x > 0.4", "-x", "abs(x)", "i + 1", "i * 2.5", "~b", "x + i"],
    *_each("jnp.{}(z)", "exp log sin abs conj real imag angle sqrt"),
    *["x * np.ones(3)", "x + np.arange(3)", "jnp.float16(x)", "x.astype(jnp.int32)", "jnp.divmod(x, y)"],
    *["lax.bitcast_convert_type(x, jnp.int32)", "lax.reduce_precision(x, 5, 10)", "lax.population_count(i)", "lax.clz(i)"],
]
SHAPES = [
    *_each("jnp.{}(w)", "ravel transpose squeeze flipud fliplr flip rot90 atleast_1d atleast_2d atleast_3d copy"),
    *_each("jnp.{}((x, y))", "concatenate stack vstack hstack column_stack dstack"),
    *_each("jnp.{}(m)", "diag diagonal trace tril triu"),
    *["jnp.reshape(w, (3, 2))", "w.T", "w[0]", "w[:, 1]", "w[..., ::-1]", "w[1:, :2]", "w[:, None]", "x[i]", "x[-1]"],
    *["w[i[0]]", "x[b.argmax()]", "m[i, i]", "m[i]", "m[:, i]", "w.sum()", "jnp.expand_dims(w, 1)", "jnp.tile(x, 2)"],
    *["jnp.repeat(x, 2)", "jnp.roll(x, 1)", "jnp.pad(w, 1)", "jnp.pad(x, 2, mode='edge')", "jnp.pad(x, 1, mode='wrap')"],
    *["jnp.broadcast_to(x, (2, 3))", "jnp.moveaxis(t, 1, 2)", "jnp.swapaxes(t, 1, 2)", "jnp.split(x, 3)", "jnp.unstack(w)"],
    *["jnp.array_split(x, 2)", "jnp.meshgrid(x, y)", "jnp.append(x, y)", "jnp.insert(x, 1, 2.0)", "jnp.delete(x, 1)"],
    *["jnp.take(x, i)", "jnp.take_along_axis(x, i, 0)", "jnp.select([b, ~b], [x, y])", "jnp.diagflat(x)", "jnp.diff(x)"],
    *["jnp.ediff1d(x)", "jnp.resize(x, (5,))", "jnp.choose(i, (x, y, x))", "jnp.zeros_like(x)", "jnp.ones_like(x)"],
    *["jnp.full_like(x, 2.0)", "jnp.eye(3) + m", "jnp.arange(3) + x", "jnp.linspace(0, s, 4)", "jnp.tri(3) + m"],
    *["jnp.vander(x)", "jnp.identity(3) * m", "jnp.block([[m, m]])", "jnp.rollaxis(t, 2)", "jnp.array([s, s])"],
    *["x.at[i].set(y)", "x.at[0].set(1.0)", "x.at[i].add(y)", "x.at[0].add(1.0)", "x.at[i].mul(y)", "x.at[i].min(y)"],
    *["x.at[i].max(y)", "x.at[1:].set(2.0)", "x.at[i].get()", "m.at[i, i].add(x)", "x.at[i].apply(jnp.sin)"],
    *["lax.dynamic_slice(x, (i[0],), (2,))", "lax.dynamic_update_slice(x, y[:2], (i[0],))", "lax.rev(w, (0,))"],
    *["lax.slice(w, (0, 1), (2, 3))", "lax.slice(w, (0, 0), (2, 3), (1, 2))", "lax.transpose(w, (1, 0))"],
    *["lax.broadcast_in_dim(x, (2, 3), (1,))", "lax.broadcast(x, (2,))", "lax.reshape(w, (6,))", "lax.squeeze(w[:1], (0,))"],
    *["lax.pad(x, 0.0, [(1, 1, 0)])", "lax.concatenate([x, y], 0)", "lax.iota(jnp.int32, 3) + i", "lax.expand_dims(x, (0,))"],
    *["lax.gather(x, i[:, None], lax.GatherDimensionNumbers((), (0,), (0,)), (1,))", "lax.index_in_dim(w, 1, 0)"],
    *["lax.broadcasted_iota(jnp.int32, (2, 3), 1) + w", "lax.slice_in_dim(w, 1, 3, axis=1)", "lax.dynamic_index_in_dim(w, i[0])"],
]
REDUCTIONS = [
    *_each("jnp.{}(w)", "sum prod max min mean var std any all argmax argmin median ptp nansum nanmean nanmax nanmin"),
    *_each("jnp.{}(w, axis=1)", "sum prod max min mean var std any all argmax argmin median nansum nanmean cumsum cumprod"),
    *_each("jnp.{}(x)", "cumsum cumprod sort argsort nancumsum nanstd count_nonzero nanprod nanargmax average"),
    *_each("lax.{}(x)", "cumsum cumprod cummax cummin cumlogsumexp sort"),
    *["jnp.quantile(x, 0.3)", "jnp.percentile(x, 30)", "jnp.nanquantile(x, 0.3)", "jnp.cov(w)", "jnp.corrcoef(w)"],
    *["jnp.histogram(x, 4)", "jnp.bincount(i, length=4)", "jnp.digitize(x, y)", "jnp.searchsorted(x, y)", "jnp.lexsort((x, y))"],
    *["jnp.interp(x, y, y)", "jnp.trapezoid(x)", "jnp.gradient(x)", "jnp.partition(x, 1)", "jnp.argpartition(x, 1)"],
    *["jnp.unique(i, size=3)", "jnp.nonzero(b, size=2)", "jnp.isin(i, j)", "jnp.convolve(x, y)", "jnp.correlate(x, y)"],
    *["jnp.polyval(x, y)", "jnp.polyfit(x, y, 1)", "jnp.isclose(x, y)", "jnp.allclose(x, y)", "jnp.array_equal(x, y)"],
    *["lax.top_k(x, 2)", "lax.argmax(x, 0, jnp.int32)", "lax.reduce_sum(w, (0,))", "lax.sort_key_val(x, i)"],
    *["lax.reduce(x, 0.0, lax.add, (0,))", "lax.reduce(x, 1.0, lambda p, q: p * q + 1, (0,))", "lax.reduce_max(w, (1,))"],
    *["lax.reduce_window(t, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), 'VALID')", "nn.avg_pool if 0 else x + 1"],
    *["lax.reduce_window(t, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), 'SAME')", "lax.reduce_and(b, (0,))"],
    *["jnp.sum(w, where=w > 0.3)", "jnp.max(x, initial=0.0)", "jnp.sum(i)", "jnp.sum(b)", "jnp.apply_along_axis(jnp.sum, 0, w)"],
    *["jax.ops.segment_sum(x, i, 3)", "jax.ops.segment_max(x, i, 3)", "lax.associative_scan(jnp.add, x)", "jnp.piecewise(x, [b], [1.0, 2.0])"],
]
PRODUCTS = [
    *["jnp.dot(x, y)", "jnp.dot(w, m)", "m @ x", "jnp.matmul(m, m)", "jnp.inner(x, y)", "jnp.outer(x, y)", "jnp.vdot(x, y)"],
    *["jnp.tensordot(w, m, 1)", "jnp.einsum('ij,jk->ik', w, m)", "jnp.einsum('ii->i', m)", "jnp.kron(w, m)", "jnp.cross(x, y)"],
    *["lax.dot(w, m)", "lax.dot_general(m, m, (((1,), (0,)), ((), ())))", "lax.batch_matmul(t, t[0].mT[None])", "z @ z"],
    *["lax.conv(t, jnp.ones((2, 4, 2, 2)), (1, 1), 'SAME')", "lax.conv_general_dilated(t, jnp.ones((2, 4, 1, 1)), (1, 1), 'VALID')"],
    *_each("linalg.{}(m)", "inv det slogdet cholesky qr svd eigh eigvalsh norm pinv matrix_rank cond eig"),
    *["linalg.solve(m, x)", "linalg.lstsq(m, x)", "linalg.norm(x)", "linalg.norm(m, axis=1)", "linalg.matrix_power(m, 3)"],
    *["linalg.multi_dot([m, m, m])", "linalg.cross(x, y)", "linalg.vector_norm(x)", "linalg.outer(x, y)", "linalg.tensorsolve(m, x)"],
    *_each("lax_linalg.{}(m)", "cholesky lu qr svd eigh eig schur hessenberg"),
    *["lax_linalg.triangular_solve(m, m)", "lax_linalg.triangular_solve(m, x[:, None], left_side=True, lower=True)"],
    *["lax_linalg.tridiagonal_solve(x, x, x, m)", "lax_linalg.householder_product(m, x)", "lax_linalg.lu_pivots_to_permutation(i, 3)"],
    *["scipy_linalg.cho_factor(m)", "scipy_linalg.cho_solve((m, True), x)", "scipy_linalg.lu(m)", "scipy_linalg.expm(m)"],
    *["scipy_linalg.solve_triangular(m, x)", "scipy_linalg.lu_factor(m)", "scipy_linalg.lu_solve((m, i), x)", "scipy_linalg.block_diag(m, m)"],
    *_each("fft.{}(x)", "fft ifft rfft fftshift ifftshift hfft"),
    *["fft.irfft(z)", "fft.fft2(m)", "fft.rfftn(m)", "fft.fftfreq(3) + x", "lax.fft(z, 'fft', (3,))"],
]
FUNCTIONS = [
    *_each("nn.{}(x)", "relu relu6 sigmoid softplus silu swish gelu elu selu celu leaky_relu log_sigmoid soft_sign mish"),
    *_each("nn.{}(x)", "hard_tanh hard_sigmoid hard_silu squareplus tanh softmax log_softmax standardize logsumexp"),
    *_each("nn.{}(x)", "sparse_plus sparse_sigmoid identity hard_swish log1mexp"),
    *["nn.gelu(x, approximate=False)", "nn.softmax(w, axis=0)", "nn.softmax(x, where=b)", "nn.one_hot(i, 3)", "nn.glu(t)"],
    *["nn.dot_product_attention(t, t, t)", "nn.logsumexp(w, axis=1)", "nn.log_softmax(w, axis=0)", "nn.logmeanexp(x)"],
    *_each("special.{}(x)", "gammaln digamma erf erfc erfinv expit logit ndtr ndtri log_ndtr i0 i0e i1 i1e entr gamma"),
    *_each("special.{}(x, y)", "betaln beta gammainc gammaincc xlogy xlog1py kl_div rel_entr zeta logsumexp poch"),
    *["special.betainc(x, y, y)", "special.polygamma(1, x)", "special.logsumexp(w, axis=1)", "special.multigammaln(x + 3, 2)"],
    *["special.expn(1, x)", "special.exp1(x)", "special.expi(x)", "special.factorial(x)", "special.spence(x)"],
    *_each("random.{}(k)", "key_data split uniform normal"),
    *_each("random.{}(jax.random.key(0), (3,)) + x", "uniform normal gumbel exponential laplace bernoulli cauchy logistic"),
    *_each("random.{}(k, (3,))", "uniform normal bernoulli gumbel exponential truncated_normal"),
    *["random.randint(k, (3,), 0, 10)", "random.permutation(k, 5)", "random.choice(k, 5, (2,))", "random.fold_in(k, 3)"],
    *["random.categorical(k, x)", "random.gamma(k, x)", "random.beta(k, x, y)", "random.dirichlet(k, x)", "random.poisson(k, 2.0)"],
    *["random.multivariate_normal(k, x, m)", "random.bits(k, (2,))", "random.truncated_normal(k, -1.0, 1.0, (3,))", "random.clone(k) + 1"],
    *["random.normal(random.wrap_key_data(k), (3,))", "random.key_data(random.split(random.key(1)))", "random.orthogonal(k, 3)"],
]
CONTROL = [
    *["jax.jit(jnp.sin)(x)", "jax.jit(lambda v: jax.jit(jnp.cos)(v) * 2)(x)", "lax.cond(s > 0, jnp.sin, jnp.cos, x)"],
    *["lax.switch(i[0], [jnp.sin, jnp.cos, jnp.tan], x)", "lax.scan(lambda c, v: (c + v, c * v), s, x)", "lax.map(jnp.sin, x)"],
    *["lax.fori_loop(0, 3, lambda n, v: v * 2, x)", "lax.while_loop(lambda v: v.sum() < 9, lambda v: v + 1, x)"],
    *["lax.fori_loop(0, i[0], lambda n, v: v * n, x)", "jax.checkpoint(jnp.sin)(x)", "lax.stop_gradient(x) * x"],
    *["jax.pure_callback(np.sin, x, x)", "lax.optimization_barrier(x)", "jax.named_call(jnp.sin)(x)", "lax.scan(lambda c, _: (c * 2, None), s, None, 3)"],
    *["lax.custom_linear_solve(lambda v: m @ v, x, lambda f, v: v, lambda f, v: v)", "jax.vmap(lambda v: lax.psum(v, 'n'), axis_name='n')(x)"],
    *["lax.custom_root(lambda v: v**2 - s, s, lambda f, v: v, lambda g, v: v / g(1.0))", "jax.jvp(jnp.sin, (x,), (y,))"],
    *["jax.vmap(lambda p, v: lax.cond(p, jnp.sin, jnp.cos, v))(b, x)", "jax.linearize(jnp.sin, x)[1](y)", "jax.hessian(lambda v: (v**3).sum())(x)"],
    *["jax.jacfwd(jnp.sin)(x)", "jax.jacrev(jnp.sin)(x)", "jax.vjp(jnp.exp, x)[1](y)", "jax.device_put(x) * 2"],
    *["jax.debug.callback(print, x) or x", "jax.debug.print('{v}', v=x) or x", "jax.experimental.io_callback(np.sin, x, x)"],
]
GRADIENTS = [
    *_each("jnp.{}(x)", "sin cos tan tanh exp log sqrt abs log1p expm1 arctan square sinc sum prod max min mean var std"),
    *_each("jnp.{}(x)", "cumsum cumprod sort median reciprocal logaddexp.reduce if 0 else".split(" logaddexp")[0]),
    *_each("nn.{}(x)", "relu sigmoid softplus silu gelu elu selu celu leaky_relu log_sigmoid softmax log_softmax logsumexp"),
    *_each("linalg.{}(m)", "inv det cholesky norm"),
    *_each("jnp.{}(x, y)", "multiply divide power maximum arctan2 hypot logaddexp dot outer"),
    *["linalg.slogdet(m)[1]", "linalg.eigh(m)[0]", "linalg.svd(m)[1]", "linalg.solve(m, x)", "m @ x", "x[i]", "x[1:]", "w[0]"],
    *["jnp.take(x, i)", "m[i, i]", "jnp.where(b, x, y)", "jnp.clip(x, 0.4, 0.8)", "jnp.concatenate((x, y))", "jnp.stack((x, y))"],
    *["jnp.pad(x, 1)", "jnp.einsum('ij,jk->ik', w, m)", "x.at[i].add(y)", "x.at[i].set(y)", "jnp.sum(w, axis=1)", "jnp.max(w, axis=1)"],
    *["nn.gelu(x, approximate=False)", "nn.dot_product_attention(t, t, t)", "special.gammaln(x)", "special.logit(x)", "special.erf(x)"],
    *["lax.reduce_window(t, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), 'VALID')", "lax.cond(s > 0, jnp.sin, jnp.cos, x)"],
    *["lax.reduce_window(t, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), 'VALID')", "lax.scan(lambda c, v: (c * v, c), s, x)[0]"],
    *["lax.conv(t, jnp.ones((2, 4, 2, 2)), (1, 1), 'SAME')", "fft.fft(x).real", "jnp.repeat(x, 2)", "jnp.broadcast_to(x, (2, 3))"],
    *["jax.checkpoint(jnp.sin)(x)", "lax.fori_loop(0, 3, lambda n, v: v * v, x)", "x**3", "x**2.5", "jax.jit(jnp.sin)(x)"],
]
BATCHES = [
    *["m @ x", "x[i[0]]", "jnp.sort(x)", "linalg.solve(m, x)", "jnp.where(b, x, y)", "lax.dynamic_slice(x, (i[0],), (2,))"],
    *["x.at[i].add(y)", "jnp.cumsum(x)", "lax.scan(lambda c, v: (c + v, c), s, x)", "linalg.slogdet(m)", "nn.softmax(x)"],
]


def calls() -> Iterator[str]:
    """Each call by name: an expression, after `grad ` or `vmap ` where it is transformed."""
    yield from dict.fromkeys([*ELEMENTWISE, *SHAPES, *REDUCTIONS, *PRODUCTS, *FUNCTIONS, *CONTROL])
    yield from (f"grad {text}" for text in dict.fromkeys(GRADIENTS))
    yield from (f"vmap {text}" for text in BATCHES)


def call(jax: ModuleType, name: str) -> tuple[Callable[..., Any], list[Any]]:
    """The function of a call, and its arguments."""
    how, text = name.split(" ", 1) if name.startswith(("grad ", "vmap ")) else ("", name)
    known: dict[str, Any] = {"jax": jax, "np": np}
    importlib.import_module("jax.experimental")
    known.update({short: importlib.import_module(f"jax.{path}") for short, path in MODULES.items()})
    taken = [argument for argument in ARGUMENTS if re.search(rf"(?<![\w.']){argument}\b(?!')", text)]
    fun, args = eval(f"lambda {', '.join(taken)}: {text}", known), [ARGUMENTS[argument] for argument in taken]
    if how == "vmap":
        return jax.vmap(fun), [np.stack([a, a]) for a in args]
    if how == "grad":
        numbers = [n for n, a in enumerate(args) if a.dtype.kind == "f"]
        return jax.grad(lambda *a: fun(*a).sum(), argnums=tuple(numbers)), args
    return fun, args


def described(jaxpr: Any, core: ModuleType) -> dict[str, list[str]]:
    """For each primitive of a program, and of the programs inside, the sorted keys of its params; names of `jit`s."""
    found: dict[str, set[str]] = {}
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        found.setdefault(name, set()).update(map(str, eqn.params))
        if name == "jit":
            found.setdefault("names", set()).add(eqn.params["name"])
        for inner in programs_in(list(eqn.params.values()), core):
            for key, values in described(inner, core).items():
                found.setdefault(key, set()).update(values)
    return {key: sorted(values) for key, values in found.items()}


def programs_in(values: Any, core: ModuleType) -> Iterator[Any]:
    """The jaxprs among params and in tuples of them."""
    for value in values:
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            yield from programs_in(value, core)
