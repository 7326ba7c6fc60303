"""Activations of complex numbers: their order is by real part, then by imaginary part. The values are JAX's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini.numpy as jnp
from xlamini import nn
from xlamini.scipy import special

X = jnp.asarray(np.array([1 + 1j, 0.5 - 2j, -3 + 0.1j, 0], np.complex64))
VALUES: dict[Callable[..., Any], list[complex]] = {
    nn.elu: [1 + 1j, 0.5 - 2j, -0.9504617 + 0.00497041j, 0],
    nn.celu: [1 + 1j, 0.5 - 2j, -0.9504617 + 0.00497041j, 0],
    nn.selu: [1.050701 + 1.050701j, 0.5253505 - 2.101402j, -1.671006 + 0.008738476j, 0],
    nn.softplus: [1.21357 + 0.7472885j, 0.426369 - 1.364403j, 0.0483616 + 0.004735708j, 0.6931472],
    nn.log_sigmoid: [-0.2135701 + 0.2527113j, 0.07363101 - 0.635597j, -3.048362 + 0.0952642j, -0.6931472],
    nn.mish: [0.799165 + 1.143972j, -0.6856843 - 4.510069j, -0.1454475 - 0.00934155j, 0],
    special.logit: [0.3465736 + 2.356194j, -2.651635j, -0.2874392 + 3.133266j, -np.inf],
    special.gamma: [0.4980159 - 0.1549497j, 0.0898552 + 0.06049365j, -0.2057204 + 1.628951j, complex(np.nan, np.nan)],
}
POWERS: dict[Callable[..., Any], list[complex]] = {
    special.boxcox: [-0.3523658 + 0.6050119j, -5.637439 - 4.676921j, -0.2483273 + 0.2969776j],
    special.boxcox1p: [0.01889887 + 1.542623j, 0.787264 - 6.76456j, -0.3192296 + 0.210628j],
}


@pytest.mark.parametrize("function", VALUES)
def test_functions_of_complex_numbers(function: Callable[..., Any]) -> None:
    np.testing.assert_allclose(np.asarray(function(X)), np.array(VALUES[function], np.complex64), 2e-6, 2e-7)


@pytest.mark.parametrize("function", POWERS)
def test_transformations_of_complex_numbers(function: Callable[..., Any]) -> None:
    np.testing.assert_allclose(function(X[:3], 2 + 1j), np.array(POWERS[function], np.complex64), 2e-6)
