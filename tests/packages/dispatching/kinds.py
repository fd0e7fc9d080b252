"""Every way in that a module may use."""

import plum

from . import dispatch, g


class Metres:
    def __init__(self, value):
        self.value = value


@dispatch.multi((int, int), (str, str))
def f(x, y):
    return "two"


@dispatch(precedence=2)
def f(x: complex, y: complex = 1j):
    return "complex"


@g.dispatch_multi((bytes,), (bytearray,))
def g_of_bytes(x):
    return "bytes"


g.register(lambda x: "memory", signature=plum.Signature(memoryview))


@plum.conversion_method(type_from=Metres, type_to=float)
def metres_to_float(metres):
    return float(metres.value)


plum.add_promotion_rule(Metres, int, Metres)


class Ruler:
    @dispatch
    def measure(self, x: Metres):
        return x.value
