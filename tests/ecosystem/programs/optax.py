"""Programs of optax: training with schedules and masks, L-BFGS with its line search, losses, and every optimizer."""
from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

TOLERANCES = {"a_loss_far_from_its_label": 0.02}


@functools.cache
def _data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((128, 6)).astype(np.float32)
    labels = (x @ rng.standard_normal((6, 3)) + 0.3 * rng.standard_normal((128, 3))).argmax(1)
    return jnp.asarray(x), jnp.asarray(labels, jnp.int32)


def _network(params, x):
    return jnp.tanh(x @ params["w0"] + params["b0"]) @ params["w1"] + params["b1"]


def _params():
    rng = np.random.default_rng(1)
    shapes = {"w0": (6, 16), "b0": (16,), "w1": (16, 3), "b1": (3,)}
    return {name: jnp.asarray(rng.standard_normal(s) * 0.3, jnp.float32) for name, s in shapes.items()}


def _loss(params, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(_network(params, x), labels).mean()


def classifier_on_eight_devices() -> dict[str, jax.Array]:
    """AdamW with a warm-up, clipping, masked decay and an average of the weights; the batch over eight devices."""
    x, labels = _data()
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    x, labels = jax.device_put((x, labels), NamedSharding(mesh, P("batch")))
    params = jax.device_put(_params(), NamedSharding(mesh, P()))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.02, 10, 100)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, weight_decay=1e-3, mask=lambda p: jax.tree.map(lambda a: a.ndim > 1, p)),
    )

    @jax.jit
    def step(params, average, state):
        value, grads = jax.value_and_grad(_loss)(params, x, labels)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, average, 0.1), state, value

    state, average, losses = tx.init(params), params, []
    for _ in range(100):
        params, average, state, value = step(params, average, state)
        losses.append(float(value))
    return {
        "losses": jnp.array(losses[::20]),
        "final": _loss(params, x, labels),
        "averaged": _loss(average, x, labels),
        "norm": optax.global_norm(params),
        "b1": params["b1"],
        "count": [count for _, count in optax.tree.get_all_with_path(state, "count")],
    }


def line_searches_and_accumulation() -> dict[str, jax.Array]:
    """L-BFGS to convergence inside while_loop, gradients accumulated over micro-batches, frozen and per-label parts."""
    x, labels = _data()
    objective = lambda p: _loss(p, x, labels) + 1e-2 * optax.tree.norm(p, squared=True)
    lbfgs = optax.lbfgs()

    def step(carry):
        params, state, i = carry
        value, grad = optax.value_and_grad_from_state(objective)(params, state=state)
        updates, state = lbfgs.update(grad, state, params, value=value, grad=grad, value_fn=objective)
        return optax.apply_updates(params, updates), state, i + 1

    start = (_params(), lbfgs.init(_params()), 0)
    params = jax.jit(lambda s: jax.lax.while_loop(lambda c: c[2] < 60, step, s))(start)[0]

    parts = optax.multi_transform(
        {"slow": optax.sgd(0.01, momentum=0.9), "fast": optax.adam(0.05), "frozen": optax.set_to_zero()},
        {"w0": "fast", "b0": "frozen", "w1": "slow", "b1": "slow"},
    )
    tx = optax.MultiSteps(parts, every_k_schedule=4)

    @jax.jit
    def micro(carry, batch):
        params, state = carry
        grads = jax.grad(_loss)(params, *batch)
        updates, state = tx.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), _loss(params, *batch)

    batches = (x.reshape(16, 8, 6), labels.reshape(16, 8))
    (accumulated, state), losses = jax.lax.scan(micro, (_params(), tx.init(_params())), batches)
    return {
        "minimum": objective(params),
        "slope": optax.tree.norm(jax.grad(objective)(params)) < 2e-4,
        "accumulated": accumulated,
        "losses": losses,
        "steps": state.gradient_step,
    }


def losses_and_their_gradients() -> dict[str, jax.Array]:
    """Losses and projections, some with rules of their own, and their gradients; also by rows, and of second order."""
    rng = np.random.default_rng(2)
    logits = jnp.asarray(rng.standard_normal((4, 5)) * 3, jnp.float32)
    targets = jax.nn.softmax(jnp.asarray(rng.standard_normal((4, 5)), jnp.float32))
    signs = jnp.sign(targets - 0.2)
    labels = jnp.array([0, 3, 1, 2])
    log_p = jnp.asarray(rng.standard_normal((2, 6, 4)), jnp.float32)
    paddings = jnp.zeros((2, 6)), jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    functions = {
        "softmax": lambda x: optax.softmax_cross_entropy(x, targets),
        "focal": lambda x: optax.sigmoid_focal_loss(x, targets, alpha=0.3),
        "poly": lambda x: optax.losses.poly_loss_cross_entropy(x, targets),
        "hinge": lambda x: optax.losses.multiclass_hinge_loss(x, labels),
        "perceptron": lambda x: optax.hinge_loss(x, signs),
        "sparsemax": lambda x: optax.losses.multiclass_sparsemax_loss(x, labels),
        "huber": lambda x: optax.huber_loss(x, targets),
        "log_cosh": lambda x: optax.log_cosh(x, targets),
        "kl": lambda x: optax.kl_divergence(jax.nn.log_softmax(x), targets),
        "cosine": lambda x: optax.cosine_distance(x, targets),
        "ctc": lambda x: optax.ctc_loss(log_p * x[0, 0], paddings[0], jnp.array([[1, 2, 1], [3, 3, 0]]), paddings[1]),
        "ranking": lambda x: optax.losses.ranking_softmax_loss(x, targets),
        "simplex": lambda x: optax.projections.projection_simplex(x[0]) ** 2,
        "l1_ball": lambda x: optax.projections.projection_l1_ball(x, 2.0) ** 2,
        "safe_norm": lambda x: optax.safe_norm(x - x[:1], 1e-3, axis=1),
    }
    values = {name: [f(logits), jax.grad(lambda x, f=f: f(x).sum())(logits)] for name, f in functions.items()}
    rows = jax.vmap(jax.grad(lambda row, t: optax.sigmoid_focal_loss(row, t).sum()))(logits, targets)
    return {**values, "rows": rows}


def a_loss_far_from_its_label() -> dict[str, jax.Array]:
    """Its curvature, -95 * exp(-50), of which JAX lacks one part: the second derivative of softplus is 0 there."""
    return {"curvature": jax.hessian(lambda x: optax.sigmoid_focal_loss(x, jnp.array(0.0)))(50.0)}


def every_optimizer() -> dict[str, jax.Array]:
    """Thirty steps of each optimizer on a badly scaled bowl, with jit and scan."""
    made = {
        "adabelief": optax.adabelief(0.1), "adadelta": optax.adadelta(1.0), "adafactor": optax.adafactor(0.1),
        "adagrad": optax.adagrad(0.5), "adam": optax.adam(0.1), "adamax": optax.adamax(0.1), "adan": optax.adan(0.1),
        "amsgrad": optax.amsgrad(0.1), "fromage": optax.fromage(0.1), "lamb": optax.lamb(0.1), "lars": optax.lars(0.1),
        "lion": optax.lion(0.05), "nadam": optax.nadam(0.1), "noisy_sgd": optax.noisy_sgd(0.05), "novograd":
        optax.novograd(0.1), "optimistic": optax.optimistic_gradient_descent(0.05), "radam": optax.radam(0.1),
        "rmsprop": optax.rmsprop(0.05), "rprop": optax.rprop(0.1), "sgd": optax.sgd(0.05, 0.9, nesterov=True),
        "sm3": optax.sm3(0.5), "yogi": optax.yogi(0.1), "muon": optax.contrib.muon(0.1),
        "prodigy": optax.contrib.prodigy(1.0), "schedule_free": optax.contrib.schedule_free_adamw(0.1),
        "sam": optax.contrib.sam(optax.sgd(0.05), optax.sgd(0.01)), "dowg": optax.contrib.dowg(1.0),
    }  # fmt: skip
    scales = jnp.array([[1.0, 3.0], [0.3, 1.5]])
    bowl = lambda p: ((p["w"] - 1.0) ** 2 * scales).sum() + ((p["b"] + 2.0) ** 2).sum()
    start = {"w": jnp.array([[0.0, 2.5], [-1.0, 0.5]]), "b": jnp.array([0.5])}

    def run(tx):
        def step(carry, _):
            params, state = carry
            updates, state = tx.update(jax.grad(bowl)(params), state, params)
            return (optax.apply_updates(params, updates), state), bowl(params)

        return jax.jit(lambda p: jax.lax.scan(step, (p, tx.init(p)), None, 30))(start)[1][-1]

    return {name: run(tx) for name, tx in made.items()}
