"""Programs of jaxopt: minimizers under jit and vmap, and derivatives of what they find by implicit differentiation."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
from jaxopt import implicit_diff, linear_solve, projection, prox


def _problem():
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.standard_normal((20, 4)), jnp.float32), jnp.asarray(rng.standard_normal(20), jnp.float32)


def implicit_derivatives() -> dict[str, jax.Array]:
    """The solution of ridge and lasso regressions and of a constrained fit, with derivatives by their penalties."""
    x, y = _problem()

    def ridge(w, penalty):
        return 0.5 * ((x @ w - y) ** 2).mean() + 0.5 * penalty * (w**2).sum()

    solvers = {
        "gradient_descent": jaxopt.GradientDescent(ridge, maxiter=300, tol=1e-7),
        "lbfgs": jaxopt.LBFGS(ridge, maxiter=50, tol=1e-7),
        "bfgs": jaxopt.BFGS(ridge, maxiter=50, tol=1e-7),
        "nonlinear_cg": jaxopt.NonlinearCG(ridge, maxiter=50, tol=1e-7),
    }
    solution = {name: jax.jit(lambda p, s=s: s.run(jnp.zeros(4), p).params) for name, s in solvers.items()}

    squares = lambda w, data: 0.5 * ((data[0] @ w - data[1]) ** 2).mean()
    lasso = jaxopt.ProximalGradient(squares, prox.prox_lasso, maxiter=300)
    sparse = lambda penalty: lasso.run(jnp.zeros(4), penalty, (x, y)).params
    simplex = jaxopt.ProjectedGradient(ridge, projection.projection_simplex, maxiter=300, tol=1e-7)
    weights = lambda penalty: simplex.run(jnp.full(4, 0.25), None, penalty=penalty).params

    @implicit_diff.custom_root(jax.grad(ridge))
    def closed_form(_, penalty):
        return jnp.linalg.solve(x.T @ x / 20 + penalty * jnp.eye(4), x.T @ y / 20)

    return {
        **{name: [f(0.1), jax.jacrev(f)(0.1)] for name, f in solution.items()},
        "lasso": [sparse(0.05), jax.jacrev(sparse)(0.05)],
        "simplex": [weights(0.1), jax.jacrev(weights)(0.1)],
        "closed_form": [closed_form(None, 0.1), jax.jacrev(closed_form, argnums=1)(None, 0.1)],
        "penalties": jax.vmap(solution["lbfgs"])(jnp.array([0.01, 0.1, 1.0])),
    }


def roots_fixed_points_and_systems() -> dict[str, jax.Array]:
    """Root finding, least squares, quadratic programs, linear solvers and Sinkhorn-like projections, differentiated."""
    x, y = _problem()
    matrix = x.T @ x / 20 + 0.5 * jnp.eye(4)
    root = jaxopt.Bisection(lambda v, c: v**3 + v - c, -5.0, 5.0, maxiter=40, tol=1e-7, check_bracket=False)
    cube = lambda c: root.run(None, c).params
    fixed = jaxopt.FixedPointIteration(lambda v, c: jnp.cos(v) * c, maxiter=100, tol=1e-7)
    cosine = lambda c: fixed.run(jnp.array(0.5), c).params
    anderson = jaxopt.AndersonAcceleration(lambda v, c: jnp.cos(v) * c, maxiter=30, tol=1e-7)
    residual = lambda w, c: jnp.tanh(x @ w) - c * jnp.tanh(y)
    gauss_newton = jaxopt.GaussNewton(residual, maxiter=40, tol=1e-7)
    marquardt = jaxopt.LevenbergMarquardt(residual, maxiter=40, tol=1e-7)
    program = jaxopt.EqualityConstrainedQP()
    constrained = lambda b: program.run(params_obj=(matrix, jnp.ones(4)), params_eq=(jnp.ones((1, 4)), b)).params.primal
    solve = lambda method: lambda b: getattr(linear_solve, f"solve_{method}")(lambda v: matrix @ v, b)
    points = jnp.array([0.3, -1.0, 2.0, 0.9])
    return {
        "bisection": jax.value_and_grad(cube)(2.0),
        "fixed_point": jax.value_and_grad(cosine)(0.8),
        "anderson": anderson.run(jnp.array(0.5), 0.8).params,
        "gauss_newton": gauss_newton.run(jnp.zeros(4), 0.5).params,
        "marquardt": marquardt.run(jnp.zeros(4), 0.5).params,
        "quadratic_program": [constrained(jnp.ones(1)), jax.jacrev(constrained)(jnp.ones(1))],
        **{name: [solve(name)(points), jax.jacrev(solve(name))(points)] for name in ("cg", "bicgstab", "gmres", "lu")},
        **{
            name: [f(points), jax.jacrev(f)(points)]
            for name, f in {
                "simplex": projection.projection_simplex,
                "l1_ball": projection.projection_l1_ball,
                "l2_ball": projection.projection_l2_ball,
                "lasso": lambda v: prox.prox_lasso(v, 0.5),
                "elastic_net": lambda v: prox.prox_elastic_net(v, (0.5, 0.2)),
            }.items()
        },
    }
