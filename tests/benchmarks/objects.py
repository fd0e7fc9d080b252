"""The rows that time one call on an object: methods of a class, of a module, and pytrees."""

import dataclasses
import functools

import equinox
import jax
import jax.numpy as jnp

from .columns import MULTI, OVLD, Program
from .scalars import NO_JIT

FIELDS = "the object would have to be an argument"


def module_method():
    def define(dispatch):
        class Model(equinox.Module):
            weight: jax.Array

            @dispatch
            def __call__(self, x: jax.Array):
                return self.weight * x

            @dispatch
            def __call__(self, x: int):
                return x

        return {"Model": Model, "model": Model(jnp.ones(4))}

    def hand():
        class Model(equinox.Module):
            weight: jax.Array

            @jax.jit
            def __call__(self, x):
                return self.weight * x

        return {"model": Model(jnp.ones(4))}

    return Program(
        define,
        "model(x)",
        hand,
        lambda: {"x": jnp.ones(4)},
        functions=lambda names: [method_of(names["Model"], "__call__")],
        absent={OVLD: FIELDS, MULTI: FIELDS},
    )


def method_of(cls, name):
    """The plum function under a name of a class; equinox wraps what a module's body defines."""
    found = vars(cls)[name]
    return getattr(found, "method", found)


def bound(*, annotated):
    def build():
        def define(dispatch):
            class Counter:
                if annotated:

                    @dispatch
                    def add(self, x: int) -> int:
                        return x + 1

                    @dispatch
                    def add(self, x: str) -> str:
                        return x
                else:

                    @dispatch
                    def add(self, x: int):
                        return x + 1

                    @dispatch
                    def add(self, x: str):
                        return x

            return {"Counter": Counter, "counter": Counter()}

        def hand():
            class Counter:
                def add(self, x):
                    return x + 1

            return {"counter": Counter()}

        functions = lambda names: [vars(names["Counter"])["add"]]
        return Program(define, "counter.add(5)", hand, dict, functions=functions, absent=NO_JIT)

    return build


class Unit:
    """As a unit of astropy: nothing says that it is immutable."""

    def __init__(self, name):
        self.name = name


METRE = Unit("m")


@functools.partial(jax.tree_util.register_dataclass, data_fields=["value"], meta_fields=["unit"])
@dataclasses.dataclass
class Quantity:
    value: jax.Array
    unit: Unit


def opaque_field():
    """Frozen runs it plainly: its static field could change under compiled code."""

    def method(x, y):
        return Quantity(x.value + y.value, x.unit)

    def define(dispatch):
        @dispatch
        def f(x: Quantity, y: Quantity):
            return Quantity(x.value + y.value, x.unit)

        @dispatch
        def f(x: Quantity, y: int):
            return Quantity(x.value + y, x.unit)

        return {"f": f}

    values = lambda: {"x": Quantity(jnp.ones(4), METRE), "y": Quantity(jnp.ones(4), METRE)}
    hints = (Quantity, Quantity)
    return Program(define, "f(x, y)", lambda: {"f": method}, values, hints)


ROWS = {
    "equinox module": module_method,
    "class method -> int": bound(annotated=True),
    "class method": bound(annotated=False),
    "opaque static field": opaque_field,
}
