"""Programs in JAX's form, for the libraries that read and rebuild them.

    outward.handed_out(closed)   xlamini's program -> JAX's primitives, params, literals, calls with names
    Jaxpr.with_consts(...)       back: the program that it was made of, or a trace of its equations
    params.py                    the table of both ways for one equation: what JAX's params have more, or otherwise
    expansions.py                what JAX's primitives say in place of a primitive of xlamini alone
    names.py                     which equations a library function made, for a `jit` equation with its name

Inside nothing has this form: `make_jaxpr` and `jit(f).trace(x).jaxpr` hand it out, and `Primitive.bind` takes it in.
"""
