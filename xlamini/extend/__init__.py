"""What libraries may rely on that define primitives, interpreters of programs, or random generators of their own.

    from xlamini import extend

    cube_p = extend.Primitive("cube")             # a name; then its rules, in any order, from any file

    @extend.shape_rule(cube_p)                    # types of the operands -> type of the result
    def _(x):
        return x

    @extend.expand_rule(cube_p)                   # what it computes; applied after all transformations
    def _(x):
        return x * x * x

    @extend.jvp_rule(cube_p)                      # primals, tangents -> result, its tangent
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return cube_p.bind(x), 3 * x * x * extend.instantiated(t)

    @extend.batch_rule(cube_p)                    # operands with batch dimensions -> result, its batch dimension
    def _(axis, operands, dims):
        return cube_p.bind(*operands), dims[0]

    def cube(x):                                  # what users call: grad(vmap(cube)), jit(cube), ...
        return cube_p.bind(x)

Each rule table is a mapping too, for the library's own primitives as well: `extend.jvp_rule[lax.sin_p]` is a rule, and
`extend.transpose_rule[p] = rule` replaces one. docs/extending.md tells what each rule takes and returns, how programs
are read and run, and which of this will stay. `extend.version` counts the changes that break a library.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
