"""The functions that JAX jits one by one, with the name that the `jit` equation has in its programs.

Functions that JAX inlines are not here, nor those of which it jits only a part.
"""
from __future__ import annotations

import functools
from typing import Any

from xlamini.core.caching.memo import memoised

_SAME = {
    "numpy": """
        allclose angle append arccosh argpartition argsort around atleast_1d atleast_2d atleast_3d bitwise_count block
        clip convolve copysign corrcoef correlate count_nonzero cov cross cumprod cumsum diagonal diff digitize divmod
        ediff1d floor_divide fmax fmin fmod frexp gcd gradient heaviside hypot i0 isclose iscomplex isinf isreal kron
        lcm ldexp lexsort matvec median modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian nanmin
        nanpercentile nanprod nanquantile nanstd nansum nanvar packbits partition percentile poly polyadd polyder
        polyfit polyint polysub polyval put_along_axis quantile remainder resize rint rollaxis rot90 round searchsorted
        signbit sinc sort sort_complex take_along_axis trace trapezoid tril triu trunc unpackbits unwrap vander vecmat
    """,
    "nn": """
        celu elu glu hard_sigmoid hard_silu hard_tanh identity leaky_relu log1mexp log_sigmoid log_softmax logmeanexp
        mish relu relu6 selu silu soft_sign softplus sparse_plus sparse_sigmoid squareplus standardize
    """,
    "numpy.linalg": """
        cholesky cond det eigh eigvals eigvalsh inv matrix_power matrix_rank norm qr slogdet solve svd
    """,
    "scipy.special": "bessel_jn expi expn gammasgn hyp1f1 hyp2f1 sici",
    "scipy.linalg": """
        block_diag convolution_matrix dft eigh_tridiagonal expm expm_frechet hadamard helmert hessenberg hilbert
        invhilbert invpascal lu lu_factor lu_solve pascal polar rsf2csf solve_sylvester
    """,
    "scipy.stats": "mode rankdata sem",
}
_OTHER: dict[str, dict[str, str]] = {
    "numpy": {
        **{name: f"_{name}" for name in "ptp var std diag take nanargmax nanargmin".split()},
        **{f"_at_least_{n}d": f"atleast_{n}d" for n in (1, 2, 3)},
        **dict.fromkeys(("_with_constants", "_by_order", "_with_ramps", "_with_statistics"), "_pad"),
        **{"_where": "_where", "_linspace": "_linspace", "_interp": "_interp", "_rolled_by": "_roll_static"},
        **dict.fromkeys(("flip", "flipud", "fliplr"), "_flip"),
        **{"_gradients": "gradient", "_fit": "polyfit", "_in_one": "_in1d", "isin": "_in1d"},
    },
    "nn": {"swish": "silu", "hard_swish": "hard_silu", "_one_hot": "_one_hot"},
    "primitives": {name: name for name in ("fft", "dynamic_index_in_dim", "dynamic_update_index_in_dim")},
    "numpy.linalg": {"_lstsq": "_lstsq", "tensorsolve": "solve"},
    "scipy.linalg": {
        **{"cholesky": "_cholesky", "cho_factor": "_cholesky", "_cho_solve": "_cho_solve", "_lu_solve": "lu_solve"},
        "solve_triangular": "_solve_triangular",
    },
    "random": {
        name: f"_{name}"
        for name in "uniform normal gumbel exponential laplace cauchy logistic bernoulli truncated_normal randint "
        "gamma beta dirichlet poisson multivariate_normal orthogonal".split()
    },
    "numpy.fft": dict.fromkeys(
        "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split(), "fft"
    ),
}
"""By the name of the function here, where JAX's is another or where only its inner part is compiled."""


@memoised("as_jax: names of jit equations", 4096)
def jit_name(fun: Any) -> str | None:
    """The name of a library function in JAX's programs; None if it has none there."""
    package = fun.__module__.removeprefix("xlamini.")
    while package:
        names = _names().get(package)
        if names is not None:
            return names.get(fun.__name__)
        package = package.rpartition(".")[0]
    return None


@functools.cache
def _names() -> dict[str, dict[str, str]]:
    same = {package: {name: name for name in names.split()} for package, names in _SAME.items()}
    return {package: {**same.get(package, {}), **_OTHER.get(package, {})} for package in {**_SAME, **_OTHER}}
