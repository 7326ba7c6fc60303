"""Data-parallel training on eight devices, and what the devices send each other.

The training step is written for one device. Where the arrays lie decides the rest: with the parameters on every device
the compiler sums the gradients, with their rows split it also gathers them. `xlamini.inspect` reads these collectives
from the compiled program. Eight devices of the CPU stand for eight chips.

    python examples/gallery/eight_devices.py
"""

from __future__ import annotations

import itertools

import numpy as np
from frame import main, steps

import xlamini
import xlamini.numpy as jnp
from xlamini import nn, random, tree
from xlamini.sharding import AxisType, NamedSharding, PartitionSpec

EXPECTED = {
    "all-reduced / parameter bytes": (0.99, 1.2),
    "difference, data parallel": (0.0, 1e-4),
    "difference, fully sharded": (0.0, 1e-4),
    "last loss / first loss": (0.0, 0.5),
}
EXPECTED_QUICK = EXPECTED | {"last loss / first loss": (0.0, 0.98)}
SIZES, BATCH, RATE = (32, 128, 128, 8), 512, 0.05


def init(key):
    """Weights and biases of three layers."""
    keys = random.split(key, len(SIZES) - 1)
    shapes = itertools.pairwise(SIZES)
    return [(random.normal(k, s) * s[0] ** -0.5, jnp.zeros(s[1])) for k, s in zip(keys, shapes, strict=True)]


def loss(params, x, y):
    """The mean square error of a small network."""
    for weight, bias in params[:-1]:
        x = nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    return jnp.mean((x @ weight + bias - y) ** 2)


@xlamini.jit
def train_step(params, x, y):
    """One step of gradient descent; the same function on one device and on eight."""
    value, grads = xlamini.value_and_grad(loss)(params, x, y)
    return tree.map(lambda p, g: p - RATE * g, params, grads), value


def train(params, batches):
    """The parameters and the losses after a step on each batch."""
    losses = []
    for i in steps(len(batches)):
        params, value = train_step(params, *batches[i])
        losses.append(float(value))
    return params, losses


def make_batches(count):
    """Inputs, and what a fixed random network says of them."""
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(SIZES[0], SIZES[-1])).astype(np.float32)
    inputs = rng.normal(size=(count, BATCH, SIZES[0])).astype(np.float32)
    return [(x, np.tanh(x @ teacher)) for x in inputs]


def place(params, mesh, axis):
    """The parameters on all devices of the mesh (axis None), or each weight's rows split over the devices."""
    rows = NamedSharding(mesh, PartitionSpec(axis)), NamedSharding(mesh, PartitionSpec())
    return [(xlamini.device_put(weight, rows[0]), xlamini.device_put(bias, rows[1])) for weight, bias in params]


def sent(params, batch):
    """The kind of each collective of the compiled step, and its bytes, in the order of the program."""
    report = xlamini.inspect(train_step)(params, *batch).json()
    return [(c["kind"], c["bytes"] * c["times"]) for c in report["targets"][0]["collectives"]]


def run(quick=False):
    """Train on eight devices, compare with one, and draw what the devices send."""
    mesh = xlamini.make_mesh((8,), ("devices",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("devices"))
    start, batches = init(random.key(0)), make_batches(20 if quick else 200)
    spread = [xlamini.device_put(batch, split) for batch in batches]
    layouts = {"data parallel": place(start, mesh, None), "fully sharded": place(start, mesh, "devices")}
    one, losses = train(start, batches)
    eight = {name: train(params, spread)[0] for name, params in layouts.items()}
    collectives = {name: sent(params, spread[0]) for name, params in layouts.items()}
    weights = sum(leaf.nbytes for leaf in tree.leaves(start))
    numbers = {
        "all-reduced / parameter bytes": sum(size for _, size in collectives["data parallel"]) / weights,
        "difference, data parallel": difference(one, eight["data parallel"]),
        "difference, fully sharded": difference(one, eight["fully sharded"]),
        "last loss / first loss": losses[-1] / losses[0],
    }
    return numbers, lambda figure: draw(figure, losses, collectives)


def difference(some, others):
    """The largest difference of two sets of parameters."""
    gaps = tree.map(lambda a, b: float(np.abs(np.asarray(a) - np.asarray(b)).max()), some, others)
    return max(tree.leaves(gaps))


def draw(figure, losses, collectives):
    """Draw the loss, and the collectives of each layout from the first to the last."""
    left, *panels = figure.subplots(1, 1 + len(collectives))
    left.semilogy(losses, color="tab:green")
    left.set(xlabel="step", title="Loss")
    colors = {"all-reduce": "tab:blue", "all-gather": "tab:orange", "reduce-scatter": "tab:red"}
    for axes, (name, sizes) in zip(panels, collectives.items(), strict=True):
        kinds, bytes_sent = zip(*sizes, strict=True)
        places = np.arange(len(kinds))
        axes.barh(places, np.array(bytes_sent) / 1024, color=[colors.get(kind, "gray") for kind in kinds])
        axes.set_yticks(places, kinds, fontsize=7)
        axes.invert_yaxis()
        axes.set(xlabel="KiB for each device", title=f"Sent in a step, {name}")


if __name__ == "__main__":
    xlamini.config.update("num_cpu_devices", 8)
    main(run, EXPECTED, EXPECTED_QUICK)
