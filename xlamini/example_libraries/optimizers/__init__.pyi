# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.example_libraries.optimizers.algorithms import (
    adagrad as adagrad, adam as adam, adamax as adamax, momentum as momentum, nesterov as nesterov, rmsprop as rmsprop,
    rmsprop_momentum as rmsprop_momentum, sgd as sgd, sm3 as sm3,
)
from xlamini.example_libraries.optimizers.declaration import Optimizer as Optimizer, optimizer as optimizer
from xlamini.example_libraries.optimizers.gradients import clip_grads as clip_grads, l2_norm as l2_norm
from xlamini.example_libraries.optimizers.schedules import (
    constant as constant, exponential_decay as exponential_decay, inverse_time_decay as inverse_time_decay,
    make_schedule as make_schedule, piecewise_constant as piecewise_constant, polynomial_decay as polynomial_decay,
)
from xlamini.example_libraries.optimizers.states import (
    JoinPoint as JoinPoint, OptimizerState as OptimizerState, pack_optimizer_state as pack_optimizer_state,
    unpack_optimizer_state as unpack_optimizer_state,
)
