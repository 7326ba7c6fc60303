# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.nn.softmax import logsumexp as logsumexp
from xlamini.scipy.special.bessel import bessel_jn as bessel_jn, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e
from xlamini.scipy.special.beta import beta as beta, betainc as betainc, betaln as betaln
from xlamini.scipy.special.combinatorics import bernoulli as bernoulli, comb as comb, factorial as factorial
from xlamini.scipy.special.dilogarithm import spence as spence
from xlamini.scipy.special.entropy import (
    entr as entr, kl_div as kl_div, rel_entr as rel_entr, xlog1py as xlog1py, xlogy as xlogy,
)
from xlamini.scipy.special.error_functions import (
    dawsn as dawsn, erf as erf, erfc as erfc, erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv, wofz as wofz,
)
from xlamini.scipy.special.exponential_integrals import exp1 as exp1, expi as expi, expn as expn
from xlamini.scipy.special.gamma import (
    digamma as digamma, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln,
    gammasgn as gammasgn, loggamma as loggamma, multigammaln as multigammaln, poch as poch, polygamma as polygamma,
)
from xlamini.scipy.special.hypergeometric import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1
from xlamini.scipy.special.legendre import lpmn as lpmn, lpmn_values as lpmn_values
from xlamini.scipy.special.normal import log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri
from xlamini.scipy.special.owens_t import owens_t as owens_t
from xlamini.scipy.special.softmax import log_softmax as log_softmax, softmax as softmax
from xlamini.scipy.special.spherical_harmonics import sph_harm_y as sph_harm_y
from xlamini.scipy.special.transformations import boxcox as boxcox, boxcox1p as boxcox1p, expit as expit, logit as logit
from xlamini.scipy.special.trigonometric_integrals import fresnel as fresnel, sici as sici
from xlamini.scipy.special.zeta import zeta as zeta
