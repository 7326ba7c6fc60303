"""Pooling and its gradients, and the resizing of images."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.targets.program import Program, f32


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    reduce_window, lax = jax.lax.reduce_window, jax.lax

    def average(x: Any) -> Any:
        return (reduce_window(x, 0.0, lax.add, (4, 4), (4, 4), "VALID") ** 2).sum()

    def largest(x: Any) -> Any:
        return (reduce_window(x, -np.inf, lax.max, (3, 3), (2, 2), "SAME") ** 2).sum()

    def largest_of_images(x: Any) -> Any:
        return (reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()

    def resized(x: Any) -> Any:
        return jax.image.resize(x, (8, 128, 128, 3), "bilinear")

    return [
        Program("pool_avg_grad", jax.grad(average), (f32(1024, 1024),)),
        Program("pool_max_grad", jax.grad(largest), (f32(1024, 1024),)),
        Program("pool_max_images_grad", jax.grad(largest_of_images), (f32(8, 112, 112, 64),)),
        Program("image_resize", resized, (f32(8, 224, 224, 3),)),
    ]
