"""Programs of jraph: a graph network trained on padded batches of graphs, and attention and segments with gradients."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import jraph
import numpy as np

# The derivative of silu is rounded otherwise than JAX's, and a hundred steps of training magnify that.
TOLERANCES = {"graph_network_learns_a_sum": 3e-5}


def _graph(seed: int, nodes: int, edges: int) -> jraph.GraphsTuple:
    rng = np.random.default_rng(seed)
    return jraph.GraphsTuple(
        nodes=rng.standard_normal((nodes, 3)).astype(np.float32),
        edges=rng.standard_normal((edges, 2)).astype(np.float32),
        senders=rng.integers(0, nodes, edges),
        receivers=rng.integers(0, nodes, edges),
        n_node=np.array([nodes]),
        n_edge=np.array([edges]),
        globals=np.zeros((1, 4), np.float32),
    )


def _batch() -> jraph.GraphsTuple:
    graphs = [_graph(i, 4 + i % 3, 6 + 2 * (i % 2)) for i in range(6)]
    return jax.tree.map(jnp.asarray, jraph.pad_with_graphs(jraph.batch_np(graphs), 40, 60, 8))


def graph_network_learns_a_sum() -> dict[str, jax.Array]:
    """A graph network with edge, node and global updates learns the sums of the nodes of padded graphs."""
    rng = np.random.default_rng(7)
    shapes = {"edge": (2 + 3 + 3 + 4, 8), "node": (3 + 8 + 8 + 4, 8), "global": (8 + 8 + 4, 4), "out": (4, 1)}
    params = {name: jnp.asarray(rng.standard_normal(s) * 0.3, jnp.float32) for name, s in shapes.items()}
    graph = _batch()
    target = jraph.segment_sum(graph.nodes.sum(1), jnp.repeat(jnp.arange(8), graph.n_node, total_repeat_length=40), 8)
    mask = jraph.get_graph_padding_mask(graph)

    def predict(params, graph):
        update = lambda name: jraph.concatenated_args(lambda x: jax.nn.silu(x @ params[name]))
        network = jraph.GraphNetwork(update("edge"), update("node"), update("global"))
        return (network(graph).globals @ params["out"])[:, 0]

    def loss(params, graph):
        return jnp.where(mask, (predict(params, graph) - target) ** 2, 0.0).sum() / mask.sum()

    @jax.jit
    def train(params):
        step = lambda p, _: (jax.tree.map(lambda a, g: a - 0.01 * g, p, jax.grad(loss)(p, graph)), loss(p, graph))
        return jax.lax.scan(step, params, None, 100)

    trained, losses = train(params)
    by_node = jax.grad(lambda nodes: loss(params, graph._replace(nodes=nodes)))(graph.nodes)
    unpadded = jraph.unpad_with_graphs(graph._replace(globals=predict(trained, graph)[:, None]))
    return {
        "losses": losses[::25],
        "final": loss(trained, graph),
        "predicted": [one.globals[0, 0] for one in jraph.unbatch(unpadded)],
        "gradient": jax.grad(loss)(params, graph),
        "by_node": by_node.sum(1),
        "mask": mask,
    }


def attention_and_segments() -> dict[str, jax.Array]:
    """A graph attention layer and a graph convolution; the segment operations their gradients; vmap over weights."""
    rng = np.random.default_rng(3)
    graph = _batch()
    w, a = (jnp.asarray(rng.standard_normal(s) * 0.4, jnp.float32) for s in ((3, 5), (10, 1)))

    def attend(w, a):
        logit = lambda sent, received, edges: jax.nn.leaky_relu(jnp.concatenate([sent, received], 1) @ a)
        return jraph.GAT(lambda nodes: nodes @ w, logit)(graph).nodes

    def convolve(w):
        return jraph.GraphConvolution(lambda nodes: nodes @ w, add_self_edges=True, symmetric_normalization=True)(graph)

    scores, ids = graph.edges[:, 0], graph.receivers
    segments = {
        "softmax": lambda x: jraph.segment_softmax(x, ids, 40),
        "max": lambda x: jraph.segment_max_or_constant(x, ids, 40),
        "mean": lambda x: jraph.segment_mean(x, ids, 40),
        "variance": lambda x: jraph.segment_variance(x, ids, 40),
        "normalize": lambda x: jraph.segment_normalize(x, ids, 40),
    }
    return {
        "attention": attend(w, a)[:6],
        "by_w": jax.jit(jax.grad(lambda w: (attend(w, a) ** 2).sum()))(w),
        "by_a": jax.grad(lambda a: (attend(w, a) ** 2).sum())(a),
        "convolution": jax.vmap(lambda w: convolve(w).nodes.sum(0))(jnp.stack([w, 2 * w])),
        **{name: [f(scores)[:6], jax.grad(lambda x, f=f: (f(x) ** 3).sum())(scores)] for name, f in segments.items()},
    }
