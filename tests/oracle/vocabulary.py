"""The hints, values and method bodies that programs are made of, as Python text.

Everything is exact: small integers and powers of two, so that what XLA fuses rounds like what it
does not. Text is evaluated in a world's module, so the same text is another class in each world.
No list or tuple has items of different types: of those beartype checks one at random.
"""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from beartype.vale import Is

Positive = Annotated[int, Is[lambda i: i > 0]]

# Made once: they are immutable, and to make one costs a compilation.
ARRAYS = {
    "s": jnp.asarray(np.float32(2)),
    "w": jnp.asarray(2.0),  # weakly typed
    "i": jnp.asarray(np.int32(3)),
    "wi": jnp.asarray(3),
    "v": jnp.asarray(np.array([1, -2], np.float32)),
    "v3": jnp.asarray(np.array([1, 2, 4], np.float32)),
    "iv": jnp.asarray(np.array([1, -2], np.int32)),
    "m": jnp.asarray(np.array([[1, 2], [4, 8]], np.float32)),
    "b": jnp.asarray(np.array([True, False])),
    "u": jnp.asarray(np.array([1, 2], np.uint8)),
    "h": jnp.asarray(np.array([1, 2], np.float16)),
    "z": jnp.asarray(np.float32(-0.0)),
    "c": jnp.asarray(np.complex64(1 + 2j)),
}

CLASSES = """
import abc, enum
import equinox as eqx
import jax, jax.numpy as jnp, numpy as np, plum
from typing import Any, Callable, Literal
from jaxtyping import Float, Int, Num, Shaped

class A:
    def __init__(self, v=0): self.v = v
    def __repr__(self): return f"{type(self).__name__}({self.v!r})"
class B(A): pass
class C(B): pass
class D:
    def __init__(self, v=0): self.v = v
    def __repr__(self): return f"D({self.v!r})"
class M(abc.ABC): pass
class N(M): pass
class P:
    def __init__(self, v): self.v = v
    def __repr__(self): return "P"
class Q(P):
    def __init__(self, v, aux): self.v, self.aux = v, aux
    def __repr__(self): return "Q"
jax.tree_util.register_pytree_node(P, lambda p: ((p.v,), None), lambda _, c: P(*c))
jax.tree_util.register_pytree_node(Q, lambda q: ((q.v,), q.aux), lambda a, c: Q(*c, a))
class W(eqx.Module):
    v: Any
    aux: Any = eqx.field(static=True)
class E(enum.Enum):
    X = 1
    Y = 2
a0, b0 = A(1), B(2)
K = 2
Lazy = plum.ModuleType(__name__ + "_lazy", "Lazy")
"""

PLAIN_HINTS = ("", "object", "Any", "int", "float", "bool", "str", "A", "B", "C", "D", "P", "Q", "W")
ARRAY_HINTS = (
    "jax.Array", 'Float[jax.Array, ""]', 'Float[jax.Array, "n"]', 'Float[jax.Array, "n n"]',
    'Int[jax.Array, "..."]', 'Num[jax.Array, "2"]', 'Shaped[jax.Array, "n 2"]', 'Float[jax.Array, "3"]',
)  # fmt: skip
OTHER_HINTS = (
    "M", "N", "A | D", "int | str", "float | jax.Array", "type", "type[A]", "type[int]", "Literal[1]",
    "Literal[True]", "Literal[0, 's']", "Positive", "list[int]", "list", "tuple[int, ...]",
    "np.ndarray", "np.floating", "E", "Callable", '"Later"', "Lazy", "A | Lazy", "dict",
)  # fmt: skip

SCALARS = (
    "1", "True", "1.0", "0", "False", "0.0", "-0.0", "3", "-1", "2.0", "float('nan')", "float('inf')",
    "2**100", "1j", "'s'", "'ab'", "b's'", "None", "E.X", "E.Y",
)  # fmt: skip
OBJECTS = (
    "A(1)", "B(2)", "C(3)", "D(4)", "a0", "b0", "A", "B", "D", "int", "bool", "jax.Array", "len",
    "(1, 2)", "('a', 'b')", "(1, True)", "Later(1)", "Promised(1)", "Lazy_class(1)", "slice(0, 1)",
)  # fmt: skip
MUTABLE = ("[1, 2]", "[]", "['a']", "[v]", "{'p': v}", "{'q': v, 'p': 1}", "A(v)", "lambda: 1")
NUMPY = tuple(
    f"np.array([1, 2], {t!r})"
    for t in (
        "bool",
        "int8",
        "int64",
        "uint16",
        "float16",
        "float32",
        "float64",
        "complex128",
        "S1",
        "object",
    )
) + ("np.array([2**40, 1])", "np.float64(1.5)", "np.int64(2)", "np.bool_(True)", "np.float32(2)")
TRACEABLE = (
    *ARRAYS, "P(s)", "P(v)", "Q(v, 1)", "Q(v, True)", "Q(s, 1.0)", "Q(v, 0.0)", "Q(v, -0.0)", "(v, v)",
    "W(v, 1)", "W(s, True)", "W(P(v), None)",
)  # fmt: skip
VALUES = SCALARS + OBJECTS + MUTABLE + NUMPY + TRACEABLE

# Bodies that tell methods apart, bodies that call other functions, and bodies that are awkward.
# {n} is the method's number, {g} a function with a higher number, {t} a class.
MARKING = (
    "return x * 0 + {n}",
    "return {n}",
    "return ({n}, x)",
    "return x * 4 + {n}",
    "return x",
    "return x * 2, {n}",
)
CALLING = (
    "return {g}(x) + {n}",
    "return {g}(x), {n}",
    "return {g}(x, 1)",
    "return {g}(x, True)",
    "return {g}(x, x)",
    "return jnp.sum({g}(x)) + {n}",
    "return jax.lax.scan(lambda c, _: (c, {g}(c)), x, None, length=2)",
    "return jax.vmap({g})(x)",
    "return jax.grad(lambda c: jnp.sum({g}(c) * 1.0))(x)",
    "return jax.jit(lambda c: {g}(c))(x)",
    "return {g}.invoke(jax.Array)(x)",
    "return {g}(x.v)",
    "return plum.convert(x, {t}).v",
    "return plum.promote(x, {t}(1))",
    "return plum.convert(x, {t}).v * {n}",
)
AWKWARD = (
    "return x.v * 2 + {n}",
    "return x.shape",
    "return x.size + {n}",
    "return {{'b': x * 2, 'a': {n} * x}}",
    "return [x, x * 2]",
    "return x * 2 if x > 0 else x - 1",
    "raise ValueError('m{n}')",
    "return jnp.where(x > 0, x * 2, x - {n})",
    "return np.asarray(x) * 2",
    "return x * K + {n}",
    "return x.astype('int32') + {n}",
    "x.append({n}); return len(x)",
    "return {t}(x)",
    "return jnp.ones(2) * {n}",
    "return x[0]",
    "return P(x * 2)",
    "return Q(x * 2, {n})",
    "return W(x * 2, {n})",
    "return (x * 2).tolist()",
    "return isinstance(x, int), {n}",
    "return K",
)
# These read a second parameter, or what is keyword-only.
BINARY = (
    "return x * y + {n}",
    "return x * (y * y / 4)",
    "return ({n}, x, y)",
    "return y.v * x + {n}",
    "return x + (y is True)",
    "return {g}(y, x)",
    "return x * 2 if y == 1 else x * 4",
    "return x * 2, type(y).__name__",
    "return x * 2, repr(y)",
    "return jnp.zeros(y) + x",
    "return x, 1.0 / (x * 0 + y)",
    "return {g}(x, y)",
)
KEYWORD = ("return ({n}, x, k)", "return x * k + {n}", "return x * 2 if k == 1 else x * 4")
REST = ("return (len(rest), x, *rest)", "return sum(rest, x) + {n}", "return {g}(*rest)")
RETURNS = (
    "int",
    "float",
    "str",
    "list",
    "tuple",
    "object",
    "jax.Array",
    "A",
    "D",
    "Any",
    "A | int",
)
KEYS = ("1", "True", "2.0", "'s'", "v", "-0.0", "0.0")
GLOBALS = ("2", "2.0", "True", "4", "v")
