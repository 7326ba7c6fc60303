"""First-order optimizers as triples of functions: init, update, and the params of a state.

    init_fun, update_fun, get_params = sgd(1e-2)
    opt_state = init_fun(params)
    opt_state = update_fun(step, grads, opt_state)      # params of the result: get_params(opt_state)

A step size is a number, or a schedule: a function from the step to a number. Params are a pytree of arrays of any
shapes and inexact dtypes, which they keep; gradients are a pytree of the same structure and shapes. TypeError for
gradients of another structure, and for a step size that is neither a number nor a function.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
