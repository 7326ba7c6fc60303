"""Special functions: lax's and scipy.special's."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini import grad, jit, lax, numpy as jnp
from xlamini.errors import ShapeError
from xlamini.scipy import special

ROWS = [
    row("betainc's a", lambda: grad(lax.betainc)(1.0, 2.0, 0.5), ValueError, "betainc has no derivative in a"),
    row(
        "betainc's b", lambda: grad(special.betainc, 1)(1.0, 2.0, 0.5), ValueError,
        "betainc has no derivative in b", "stop_gradient(b)",
    ),
    row("igamma's dtype", lambda: lax.igamma(1, 2), TypeError, "igamma does not accept dtype int32", ".astype"),
    row("igamma's shapes", lambda: lax.igamma(ones(2), ones(3)), ShapeError, "igamma: the operands' shapes differ"),
    row("twice in a", lambda: grad(grad(lax.igamma))(1.0, 2.0), NotImplementedError, "igamma_grad_a has no derivative"),
    row("complex", lambda: special.ndtr(1j), TypeError, "ndtr does not accept dtype complex64"),
    row("complex dawsn", lambda: special.dawsn(ones(2, dtype="complex64")), TypeError, "dawsn does not accept"),
    row("no array", lambda: special.erfcx("a"), TypeError, "erfcx: operand 0 must be an array or a number, got str"),
    row("series_order", lambda: special.log_ndtr(1.0, 31), ValueError, "series_order must be from 0 to 30, got 31"),
    row("series_order's type", lambda: special.log_ndtr(1.0, 1.5), TypeError, "series_order must be an integer"),
    row("polygamma's n", lambda: special.polygamma(1.5, 2.0), ValueError, "polygamma: n must be of an integer dtype"),
    row("bernoulli", lambda: special.bernoulli(-1), ValueError, "bernoulli: n must be from 0 to 500, got -1"),
    row("bernoulli without end", lambda: special.bernoulli(2**40), ValueError, "n must be from 0 to 500, got 1099511"),
    row("lpmn without end", lambda: special.lpmn(2**40, 1, ones(1)), ValueError, "lpmn: m must be from 0 to 1000"),
    row("multigammaln without end", lambda: special.multigammaln(3.0, 2**40), ValueError, "d must be from 0 to 10000"),
    row("bernoulli's type", lambda: special.bernoulli(2.5), TypeError, "bernoulli: n must be an integer, got 2.5"),
    row("factorial", lambda: special.factorial(3, exact=True), NotImplementedError, "factorial: exact=True"),
    row("bessel_jn", lambda: special.bessel_jn(1.0, v=-1), ValueError, "bessel_jn: v must be from 0 to 10000, got -1"),
    row("bessel_jn's type", lambda: special.bessel_jn(1.0, v=1.5), TypeError, "bessel_jn: v must be an integer"),
    row("shapes", lambda: special.betaln(ones(2), ones(3)), ShapeError, "betaln: Incompatible shapes for broadcasting"),
    row("diff_n", lambda: special.sph_harm_y(1, 0, 0.1, 0.2, diff_n=1), NotImplementedError, "diff_n", "xlamini.jvp"),
    row(
        "traced degree", lambda: jit(special.sph_harm_y)(jnp.array([1]), 0, 0.1, 0.2), Exception, "n",
    ),
    row("multigammaln", lambda: special.multigammaln(3.0, 1.5), TypeError, "multigammaln: d must be an integer"),
]
