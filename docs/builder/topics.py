"""The largest public modules by topic: for each topic the words of the modules that define its names."""

from __future__ import annotations

from types import ModuleType

from docs.builder.names import names_of, sources_of

TOPICS: dict[str, dict[str, str]] = {
    "xlamini": {
        "Derivatives": "derivatives custom",
        "Programs and compilation": """aot callbacks checkify compile_time inspection jit_function lints make_jaxpr memo
            remat shape_struct state targets typeof vmap""",
        "Many devices": "meshes partition_spec shard_map sharding",
        "Arrays and devices": "array conversions effects platforms recording slices",
        "Refs": "ref",
        "Flags": "config jax_flags transfer_guards user_context",
    },
    "xlamini.numpy": {
        "Creating arrays": "constants construction creation files ranges",
        "Shapes and joining": "editing flipping joining padding repeating shapes splitting",
        "Elementwise functions": """arithmetic bessel bitwise comparison complex_parts exponential integers rounding
            trigonometric ufuncs""",
        "Reductions and statistics": """correlation cumulative histograms medians nan_reductions quantiles reductions
            statistics""",
        "Indexing, sorting, searching, sets": "indexing masks packing searching selection sets sorting",
        "Products and matrices": "convolution cross einsum linear_algebra matrices",
        "Curves, polynomials, windows": "calculus curves polynomials windows",
        "Functions of functions, printing": "along_axes printing vectorize",
        "Dtypes": "aliases dtypes",
    },
    "xlamini.lax": {
        "Control flow": "cond control_flow named_composite scan solvers while_loop",
        "Elementwise operations": """accuracy arithmetic bitwise comparison complex exponential hyperbolic identity
            power rounding select special trigonometric""",
        "Reductions, sorting, running results": """approx_top_k arg_extrema cumulative reduce reductions sort
            top_k""",
        "Shapes, slices, gather and scatter": """concatenate convert_element_type dynamic_slice dynamic_update_slice
            filling gather indexing iota pad scatter shape shapes slice stack tile""",
        "Products, convolutions, windows, FFT": """dot_algorithm dot_general fft precision products ragged_products
            reduce_window select_and_scatter windows""",
        "Many devices": "collectives ragged_exchange sharding",
    },
}
PRIMITIVES, OTHERS = "Primitives", "Other names"


def topics_of(module: ModuleType) -> dict[str, list[str]]:
    """The names of a module by topic; one topic without a title for a module that is not divided."""
    topics = TOPICS.get(module.__name__)
    if topics is None:
        return {"": names_of(module)}
    sources, grouped = sources_of(module), {title: [] for title in [*topics, OTHERS, PRIMITIVES]}
    for name in names_of(module):
        grouped[_topic(name, sources.get(name, ""), topics)].append(name)
    return {title: names for title, names in grouped.items() if names}


def _topic(name: str, source: str, topics: dict[str, str]) -> str:
    if name.endswith("_p"):
        return PRIMITIVES
    parts = {*source.split(".")[1:]}
    return next((title for title, words in topics.items() if parts & {*words.split()}), OTHERS)
