"""Threads that call, freeze, register, thaw and clear at once, with a tiny switch interval.

While they run, nobody gets an exception that plain plum would not give, and every answer is one of
a method that was registered. When all are done every answer is that of the final methods.
"""

import contextlib
import gc
import itertools
import random
import sys
import threading

import jax
import jax.numpy as jnp
import plum
import pytest

import plum_freeze
from plum_freeze import _table, _ways_in

ROUNDS, THREADS = 200, 8
X = jnp.asarray(1.0)


@pytest.fixture
def tiny_switch_interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Final:
    """Something only the last methods are about."""


class Round:
    """A fresh function, jitted callers, and what threads may do to it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.dispatch = plum.Dispatcher()
        self.errors = []
        self.wrong = []
        self.count = 0

        @self.dispatch
        def f(x: object):
            return 0

        @self.dispatch
        def g(x: object):
            return f(x) + 1000

        self.f, self.g = f, g
        plum_freeze.freeze(f, g, on_late="accept")

    def register(self, hint, answer):
        def f(x):
            return answer

        f.__annotations__["x"] = hint
        self.f.dispatch(f)

    def call(self):
        for value in (1, "s", 2.0):
            answer = self.g(value)
            if not 1000 <= answer <= 1100:
                self.wrong.append(answer)

    def change(self):
        self.count += 1
        self.register(self.rng.choice([int, str, float, object]), self.rng.randrange(100))

    def freeze(self):
        plum_freeze.freeze(self.f, self.g, on_late="accept")

    def thaw(self):
        with plum_freeze.thawed(self.f):
            self.f(1)

    def clear(self):
        self.f.clear_cache(reregister=self.rng.random() < 0.3)

    def work(self, barrier, action):
        barrier.wait()
        try:
            for _ in range(6):
                action()
                self.call()
        except Exception as error:
            self.errors.append(error)


def finish(r):
    """The final methods, registered when all threads are done."""
    finals = {int: 1, str: 2, float: 3}
    for hint, answer in finals.items():
        r.register(hint, answer)
    return {1: 1001, "s": 1002, 2.0: 1003}


def race(seed):
    r = Round(seed)
    actions = [r.call, r.call, r.call, r.change, r.change, r.freeze, r.thaw, r.clear]
    barrier = threading.Barrier(THREADS)
    threads = [threading.Thread(target=r.work, args=(barrier, action)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return r


def test_many_rounds(tiny_switch_interval):
    for seed in range(ROUNDS):
        r = race(seed)
        assert r.errors == [] == r.wrong, (seed, r.errors, r.wrong)
        for value, wanted in finish(r).items():
            for _ in range(2):
                assert r.g(value) == wanted, (seed, value)
        assert r.f._pending == []
        plum.Function._instances.remove(r.f)
        plum.Function._instances.remove(r.g)


def test_the_answers_without_a_last_registration(tiny_switch_interval):
    """The same, and nothing is registered at the end: what a race left in a table would show."""
    for seed in range(60):
        r = race(seed)
        methods = {m.signature.types[0]: m.implementation(None) for m in r.f.methods}
        for value, hint in ((1, int), ("s", str), (2.0, float)):
            wanted = methods.get(hint, methods[object]) + 1000
            assert r.g(value) == wanted, (seed, value)


def test_registrations_while_others_trace(tiny_switch_interval):
    """No half-old trace is kept: jitted callers end with the final methods."""
    for seed in range(12):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: object):
            return x * 0

        plum_freeze.freeze(f, on_late="accept")
        callers = [jax.jit(lambda x, k=k: f(x) + f(x) * 0 + k) for k in range(4)]
        barrier = threading.Barrier(5)
        errors = []

        def call(caller):
            try:
                barrier.wait()
                for _ in range(4):
                    caller(X)
            except Exception as error:
                errors.append(error)

        def change():
            barrier.wait()
            for k in range(1, 4):

                def method(x, k=float(2**k)):
                    return x * k

                method.__name__ = "f"
                method.__annotations__["x"] = jax.Array
                f.register(lambda x, k=float(2**k): x * k, plum.Signature(jax.Array), None)

        threads = [threading.Thread(target=call, args=(c,)) for c in callers]
        threads.append(threading.Thread(target=change))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert [float(c(X)) for c in callers] == [8.0, 9.0, 10.0, 11.0], seed


def test_a_trace_in_flight(tiny_switch_interval):
    """The registration lands between two calls in one trace, on another thread, every time."""
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        return x

    plum_freeze.freeze(f, on_late="accept")
    traced, registered = threading.Event(), threading.Event()

    @jax.jit
    def call(x):
        first = f(x)
        traced.set()
        assert registered.wait(30)
        return first + f(x)

    answers = []
    thread = threading.Thread(target=lambda: answers.append(float(call(X))))
    thread.start()
    assert traced.wait(30)

    @dispatch
    def f(x: jax.Array):
        return x * 8

    registered.set()
    thread.join()
    assert answers[0] in (9.0, 16.0)
    assert float(call(X)) == 16.0


def test_plums_own_race(tiny_switch_interval):
    """Pull request 316: one thread resolves, a second registers and clears, the first stores."""
    inside, go_on = threading.Event(), threading.Event()
    armed = []

    class Meta(type):
        def __instancecheck__(cls, x):
            if armed and threading.current_thread().name == "resolving":
                inside.set()
                go_on.wait(20)
            return type.__instancecheck__(cls, x)

    class T(metaclass=Meta):
        __faithful__ = True

    class A(T):
        pass

    class B(T):
        pass

    for frozen in (True, False):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: T):
            return "old"

        if frozen:
            plum_freeze.freeze(f, on_late="accept")
        assert f(A()) == "old"
        inside.clear()
        go_on.clear()
        armed.append(True)
        thread = threading.Thread(target=lambda: f(B()), name="resolving")
        thread.start()
        assert inside.wait(20)

        @dispatch
        def f(x: T):
            return "new"

        assert f(A()) == "new"
        go_on.set()
        thread.join()
        armed.clear()
        if frozen:
            assert f(B()) == "new"


def test_eight_threads_meet_one_new_method(tiny_switch_interval):
    for _ in range(20):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: jax.Array, k: int):
            return x * k

        plum_freeze.freeze(f)
        barrier = threading.Barrier(THREADS)
        answers = []

        def call(k):
            barrier.wait()
            answers.extend(float(f(X, k)) for _ in range(3))

        threads = [threading.Thread(target=call, args=(k % 3,)) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == sorted(float(k % 3) for k in range(THREADS) for _ in range(3))


def test_collecting_frozen_functions_does_not_crash():
    """The compiled plum crashes where a cycle holds a weak reference to a function that is in it."""
    for i in range(500):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: int) -> int:
            return x

        plum_freeze.freeze(f)
        assert f(1) == 1
        plum.Function._instances.remove(f)
        if i % 50 == 0:
            gc.collect()
    gc.collect()


def test_a_registration_that_another_thread_meets_was_seen(monkeypatch, recwarn):
    """It is in plum's list, and the call that made it has not come back: it is one of ours."""
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        return "old"

    plum_freeze.freeze(f)
    answers = []

    @contextlib.contextmanager
    def met_at_once(function):
        yield
        thread = threading.Thread(target=lambda: answers.append(function(1)))
        thread.start()
        thread.join()

    monkeypatch.setattr(_ways_in, "_not_while_resolving", met_at_once)

    @dispatch
    def f(x: int):
        return "new"

    assert answers == ["new"]
    (warning,) = recwarn
    assert "not seen" not in str(warning.message)
    assert [r.phase for r in plum_freeze.registrations(f)][1:] == ["late"]


class ThawedAtRead:
    """In place of the slot: another thread thaws the function right after it was read n times."""

    def __init__(self, slot, n):
        self.slot, self.left = slot, itertools.count(-n, 1)

    def __get__(self, table, owner):
        seal = self.slot.__get__(table, owner)
        if next(self.left) == 0:
            self.slot.__set__(table, None)
        return seal

    def __set__(self, table, seal):
        self.slot.__set__(table, seal)


def late_by_an_old_decorator(f, register):
    f._pending.append((lambda x: "new", plum.Signature(int), 0))
    f(1)


SEAL_READERS = {
    "call": lambda f, register: f(1),
    "register": lambda f, register: register(),
    "old decorator": late_by_an_old_decorator,
    "freeze": lambda f, register: plum_freeze.freeze(f, on_late="accept"),
    "freeze *": lambda f, register: plum_freeze.freeze("*", on_late="accept"),
    "thawed": lambda f, register: plum_freeze.thawed(f).__enter__(),
    "thaw": lambda f, register: plum_freeze.thaw(f),
    "report": lambda f, register: plum_freeze.report(f).as_dict(),
    "registrations": lambda f, register: plum_freeze.registrations(f),
    "conversion": lambda f, register: plum.add_conversion_method(Final, int, lambda x: 1),
}


@pytest.mark.parametrize("name", SEAL_READERS)
def test_thawed_by_another_thread_between_any_two_looks(name, monkeypatch):
    slot = _table.Table.seal
    for n in range(12):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: object):
            return "old"

        def register(dispatch=dispatch):
            @dispatch
            def f(x: int):
                return "new"

        plum_freeze.freeze(f, on_late="accept")
        f("s")
        with monkeypatch.context() as patch:
            patch.setattr(_table.Table, "seal", ThawedAtRead(slot, n))
            with contextlib.suppress(plum_freeze.FreezeError):  # "is not frozen"
                SEAL_READERS[name](f, register)
        register()
        assert f(1) == "new"
        plum.Function._instances.remove(f)
