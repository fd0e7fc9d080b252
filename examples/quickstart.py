"""The scenario of plum's issue 154 (`JIT + plum`), plainly and with plum_freeze.

    python examples/quickstart.py

A function is dispatched under `jax.jit`. Then a method with a higher precedence is registered that
fits better, as a plugin or a notebook cell would do. Plain JAX and plum go on with what was
compiled before; with plum_freeze the new method is used everywhere, and no cache is cleared by hand.
"""

import os
import statistics
import timeit
import warnings

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import plum
from jaxtyping import Array, Float, Float64

import plum_freeze

jax.config.update("jax_enable_x64", True)


class Program:
    """One user's program: a dispatched function, and an algorithm that calls it."""

    def __init__(self):
        dispatch = self.dispatch = plum.Dispatcher()

        @dispatch
        def func(a: float | Float[Array, ""]):
            return 2.1 * a

        def call(a):
            return func(a)

        def algorithm(a):
            return func(a) + 0 * a

        self.func = func
        self.jitted = jax.jit(call)
        self.algorithm = jax.jit(algorithm)
        self.gradient = jax.grad(lambda a: func(a))

    def register_late(self):
        @self.dispatch(precedence=1)
        def func(a: Float64[Array, ""]):
            return 2.2 * a

    def answers(self):
        return {
            "jax.jit(func)(3.0)": self.jitted(3.0),
            "algorithm(3.0), jitted, calls func": self.algorithm(3.0),
            "func(jnp.asarray(3.0))": self.func(jnp.asarray(3.0)),
            "3 * jax.grad(func)(3.0)": 3 * self.gradient(3.0),
            "func(3.0), a Python float": self.func(3.0),
        }


def show(title, before, after):
    print(f"\n{title:36} before   after")
    for name in before:
        print(f"  {name:34} {before[name]:6.1f}  {after[name]:6.1f}")


def plain():
    program = Program()
    before = program.answers()
    program.register_late()
    show("plain plum and JAX", before, program.answers())
    print("  The compiled answers are stale: 6.3 is wrong, and nothing says so.")


def frozen():
    program = Program()
    plum_freeze.freeze(program.func)
    before = program.answers()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.register_late()
    show('plum_freeze, on_late="warn"', before, program.answers())
    print('  (A Python float is no Float64[Array, ""], so the last line stays.)\n')
    for warning in caught:
        place = f"{os.path.basename(warning.filename)}:{warning.lineno}"
        print(f"{place}: {warning.category.__name__}: {warning.message}")


def refused():
    program = Program()
    plum_freeze.freeze(program.func, on_late="raise")
    before = program.answers()
    try:
        program.register_late()
    except plum_freeze.LateRegistrationError as error:
        refusal = str(error)
    show('plum_freeze, on_late="raise"', before, program.answers())
    print(f"\nLateRegistrationError: {refusal}")


def speed(rounds=15, calls=400):
    """Medians of interleaved rounds, each beside the function that was jitted by hand."""
    plain_program, frozen_program = Program(), Program()
    plum_freeze.freeze(frozen_program.func)
    x = jnp.asarray(3.0)
    ways = {
        "hand-jitted function": jax.jit(lambda a: 2.1 * a),
        "frozen dispatch": frozen_program.func,
        "jax.jit over dispatch": plain_program.jitted,
        "plain dispatch": plain_program.func,
    }
    times = {name: [] for name in ways}
    for function in ways.values():
        function(x)
        function(x)
    for _ in range(rounds):
        for name, function in ways.items():
            times[name].append(timeit.timeit(lambda f=function: f(x), number=calls) / calls)
    print("\none call                    us     times the hand-jitted one")
    hand = times["hand-jitted function"]
    for name, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, hand, strict=True))
        print(f"  {name:22} {statistics.median(seconds) * 1e6:6.1f}  {ratio:6.2f}")


if __name__ == "__main__":
    plain()
    frozen()
    refused()
    speed()
