"""Another thread changes methods between any two lines of a call.

A call is stopped at one line of ours, another thread makes its change from beginning to end, and
the call goes on; this for each line in turn. Whatever the call found before, nothing of it may
answer a later call.
"""

import contextlib
import sys
import threading
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import plum
import pytest
from jaxtyping import Float

import plum_freeze
from plum_freeze import _plum

OURS = str(Path(plum_freeze.__file__).parent)
X = jnp.ones(3)
# How long a change may take before it counts as waiting for a lock that the call holds.
PATIENCE = 0.03


class _Stopper:
    """Runs `change` in another thread at the line that is the nth of ours in this thread."""

    def __init__(self, n, change):
        self.left, self.change, self.thread, self.error = n, change, None, None

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            if self.left == 0:
                sys.settrace(None)
                self.thread = threading.Thread(target=self.run)
                self.thread.start()
                self.thread.join(PATIENCE)
            self.left -= 1
        return self

    def run(self):
        try:
            self.change()
        except BaseException as error:  # noqa: BLE001
            self.error = error


def interrupted(call, n, change):
    """The answer of the call, and whether the change was made: not if the call has fewer lines."""
    stopper = _Stopper(n, change)
    before = sys.gettrace()
    sys.settrace(stopper)
    try:
        answer = call()
    finally:
        sys.settrace(before)
    if stopper.thread is not None:
        stopper.thread.join(30)
        assert not stopper.thread.is_alive(), "the change waits for ever"
        assert stopper.error is None, stopper.error
    return answer, stopper.thread is not None


class Case:
    """One function, how it is called, what changes it, and what it answers before and after."""

    def __init__(self):
        self.dispatch = plum.Dispatcher()
        self.f = self.define()
        plum_freeze.freeze(self.f, on_late="accept")
        self.prepare()

    def define(self):
        @self.dispatch
        def f(x: object):
            return "old"

        return f

    def prepare(self):
        pass

    def call(self):
        return self.f(1)

    def change(self):
        @self.dispatch
        def f(x: int):
            return "new"

    olds, new = ("old",), "new"
    step = 1  # every how many lines the call is stopped

    def check(self):
        assert self.call() == self.new

    def close(self):
        plum.Function._instances.remove(self.f)


class TypesDecide(Case):
    pass


class TypesDecideNoMore(Case):
    """The value decides after the change: what a decision depends on is found again."""

    def call(self):
        return self.f(1), self.f(2)

    def change(self):
        @self.dispatch
        def f(x: Literal[1]):
            return "new"

    olds, new = (("old", "old"), ("new", "old"), ("old", "new")), ("new", "old")

    def check(self):
        assert self.call() == self.new
        assert (self.f(2), self.f(1)) == ("old", "new")


class ValueDecides(Case):
    def define(self):
        @self.dispatch
        def f(x: object):
            return "old"

        @self.dispatch
        def f(x: Literal[2]):
            return "two"

        return f

    def change(self):
        @self.dispatch
        def f(x: Literal[1]):
            return "new"


class ShapeDecides(Case):
    def define(self):
        @self.dispatch
        def f(x: object):
            return "old"

        @self.dispatch
        def f(x: Float[jax.Array, "2"]):
            return "two"

        return f

    def call(self):
        return self.f(X)

    def change(self):
        @self.dispatch
        def f(x: Float[jax.Array, "3"]):
            return "new"


class NothingCanBeKept(Case):
    def define(self):
        @self.dispatch
        def f(x: list[str]):
            return "strings"

        @self.dispatch
        def f(x: object):
            return "old"

        return f

    def call(self):
        return self.f([1])

    def change(self):
        @self.dispatch
        def f(x: list[int]):
            return "new"


class Watched(Case):
    """The call began while the function was not frozen."""

    def prepare(self):
        plum_freeze.thaw(self.f)

    def change(self):
        super().change()
        self.f("something else")
        plum_freeze.freeze(self.f, on_late="accept")


class Sealed(Case):
    """The function is frozen anew meanwhile: methods run by the new policy."""

    def change(self):
        with plum_freeze.thawed(self.f):
            super().change()
            self.f(1)


class Invoked(Case):
    def call(self):
        return self.f.invoke(int)(1)


class Resolved(Case):
    def call(self):
        return self.f.resolve_method((1,))[0](1)


class Asked(Case):
    """The resolved methods are in plum's cache when the change comes."""

    def prepare(self):
        self.f(1)


class Jitted(Case):
    """The call runs what is compiled: it has few lines of ours."""

    def define(self):
        @self.dispatch
        def f(x: jax.Array):
            return x * 2

        return f

    def prepare(self):
        self.call(), self.call()

    def call(self):
        return self.f(X).tolist()[0]

    def change(self):
        @self.dispatch
        def f(x: jax.Array):
            return x * 3

    olds, new = (2.0,), 3.0


class JittedByShape(Jitted):
    def define(self):
        @self.dispatch
        def f(x: object):
            return x * 2

        @self.dispatch
        def f(x: Float[jax.Array, "2"]):
            return x

        return f

    def change(self):
        @self.dispatch
        def f(x: Float[jax.Array, "3"]):
            return x * 3


class Compiling(Jitted):
    """The call that compiles: of its thousands of lines every 97th, as each compiles anew."""

    step = 97

    def prepare(self):
        self.call()


class Inherited(Case):
    """The parent's method answers, until the child has one of its own."""

    def define(self):
        global Parent, Child  # plum finds an owner by its name

        class Parent:
            @self.dispatch
            def f(self, x: object):
                return "old"

        class Child(Parent):
            @self.dispatch
            def f(self, x: str):
                return "text"

        self.parent, self.child = vars(Parent)["f"], Child()
        return vars(Child)["f"]

    def call(self):
        return self.child.f(1)

    def change(self):
        @self.f.dispatch
        def f(self, x: int):
            return "new"

    def close(self):
        super().close()
        plum.Function._instances.remove(self.parent)


class Converted(Case):
    """Another rule for the conversion of the result."""

    def define(self):
        class Box(str):
            __slots__ = ()

        self.box = Box
        self.before = {entry.key for entry in _plum.entries(plum._promotion._convert)}
        plum.add_conversion_method(str, Box, lambda text: Box("old"))

        @self.dispatch
        def f(x: object) -> Box:
            return "text"

        return f

    def prepare(self):
        self.call()

    def change(self):
        plum.add_conversion_method(str, self.box, lambda text: self.box("new"))

    def close(self):
        super().close()
        rules = plum._promotion._convert
        new = [entry for entry in _plum.entries(rules) if entry.key not in self.before]
        _plum.forget_entries(rules, new)


CASES = [
    TypesDecide, TypesDecideNoMore, ValueDecides, ShapeDecides, NothingCanBeKept, Watched, Sealed,
    Invoked, Resolved, Asked, Jitted, JittedByShape, Compiling, Inherited, Converted,
]  # fmt: skip
FEW_LINES = {Asked, Jitted, JittedByShape, Converted}


@pytest.mark.parametrize("is_used", [False, True], ids=["registered", "called"])
@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_a_change_between_any_two_lines(kind, is_used):
    with contextlib.ExitStack() as stack:
        for n in range(0, 3000 * kind.step, kind.step):
            case = kind()
            stack.callback(case.close)

            def change(case=case):
                case.change()
                if is_used:
                    case.call()

            answer, is_changed = interrupted(case.call, n, change)
            assert answer in {*case.olds, case.new}, n
            if not is_changed:
                break
            case.check()
        else:
            pytest.fail("the call has more lines than expected")
        assert n > 10 or kind in FEW_LINES, "the call was not stopped anywhere"
