"""What the suites of real packages (`tests/peers`) found, each kind without the package."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
import typing

import plum
import pytest

import plum_freeze
from plum_freeze import _jit, _opaque, _plum, _table


def run(program: str) -> None:
    """Run a program in a process of its own, in which no JAX is installed."""
    blocked = "import sys; sys.modules['jax'] = None\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr


def test_frozen_with_jit_where_no_jax_is_installed():
    # plum's own suite: 22 tests ended with "No module named 'jax'", at the first object of a class.
    run("""
        import plum, plum_freeze

        class C: ...

        class D(C):
            @plum.dispatch
            def m(self, x: int):
                return x + 1

        @plum.dispatch
        def f(x: C, y: int):
            return y

        plum_freeze.freeze(f, D.m, jit=True)
        for _ in range(3):
            assert f(C(), 1) == 1
            assert f(D(), 2) == 2
            assert D().m(2) == 3
        assert f.invoke(C, int)(C(), 3) == 3
        assert "ModuleNotFoundError" not in str(plum_freeze.report(f, D.m))
    """)


@pytest.fixture
def resolutions(monkeypatch):
    """The functions that plum's resolver was asked about, in order."""
    found = []
    choose_any = _plum.choose_any

    def counting(function, args):
        found.append(function.__name__)
        return choose_any(function, args)

    monkeypatch.setattr(_plum, "choose_any", counting)
    return found


@pytest.mark.parametrize("hint", [tuple[int, dict], tuple[int, ...], dict[str, int] | tuple | None])
def test_return_hints_that_are_no_classes_are_not_resolved_at_each_call(hint, resolutions):
    # NetKet's expect_and_grad returns `tuple[Stats, PyTree]`: 1 ms more than plain plum, each call.
    def f(x):
        return (x, x) if hint == tuple[int, ...] else (x, {})

    f.__annotations__ = {"x": int, "return": hint}
    frozen = plum.Dispatcher()(f)
    plum_freeze.freeze(frozen, jit=False)
    frozen(1)
    del resolutions[:]
    for _ in range(5):
        assert frozen(1) == f(1)
    assert resolutions == []


@pytest.mark.parametrize(
    ("hint", "settled"),
    [
        (int, True),
        (tuple[int, ...], True),
        (int | list[str] | None, True),
        (typing.Callable[[int], int], False),
        (typing.Annotated[int, 1], False),
        (list[typing.Literal[1]], False),
        (list[typing.TypeVar("T")], False),
        (plum.PromisedType("Later"), False),
        (dict[str, plum.PromisedType("Later")], False),
    ],
)
def test_which_hints_mean_the_same_from_now_on(hint, settled):
    assert _plum.is_settled(hint) is settled


def frames_below(stop):
    """The modules of the callers, up to the function `stop`, as code that walks the stack reads them."""
    frame, found = sys._getframe(1), []
    while frame.f_code is not stop.__code__:
        found.append(frame.f_globals["__name__"])
        frame = frame.f_back
    return found


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("hint", [str, typing.Literal["a"], typing.Sequence[str]])
@pytest.mark.parametrize("returns", [str, typing.Any])
def test_every_frame_of_ours_has_the_name_of_its_module(jit, hint, returns):
    # Stheno: 20 tests ended with KeyError('__name__') in wbml.warning, which walks the stack.
    seen = []

    class Looks:
        pass

    def f(x, y):
        seen.append(frames_below(test_every_frame_of_ours_has_the_name_of_its_module))
        return y

    f.__annotations__ = {"x": Looks, "y": hint, "return": returns}
    frozen = plum.Dispatcher()(f)
    plum_freeze.freeze(frozen, jit=jit)
    for _ in range(3):
        assert frozen(Looks(), "a") == "a"
    assert len(seen) == 3
    assert {name.partition(".")[0] for names in seen for name in names} <= {
        "plum",
        "plum_freeze",
        __name__.partition(".")[0],
    }


def test_a_method_that_reads_a_global_which_no_source_can_name():
    # pytest's rewritten `assert` in a test's own method reads `@pytest_ar`: a SyntaxError of ours.
    scope = {"__name__": "names", "@limit": 3, "class": str}
    tree = ast.parse("def f(x: int):\n    return x + limit, kind(x)")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("limit", "kind"):
            node.id = {"limit": "@limit", "kind": "class"}[node.id]
    exec(compile(tree, "names.py", "exec"), scope)
    frozen = plum.Dispatcher()(scope["f"])
    plum_freeze.freeze(frozen)
    assert frozen(1) == (4, "1")
    scope["@limit"] = 5
    assert frozen(1) == (6, "1")


def test_a_method_with_an_assert_that_pytest_rewrites():
    @plum.Dispatcher()
    def f(x: int):
        assert x != 7, "seven"
        return x + 1

    plum_freeze.freeze(f)
    assert [f(1), f(2)] == [2, 3]
    with pytest.raises(AssertionError, match="seven"):
        f(7)


class Unit:
    """Compares by what it is made of, as units do: no static value."""

    def __eq__(self, other):
        return type(other) is Unit

    __hash__ = None


class Quantity:
    """A pytree with a static field."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit


@pytest.fixture
def looked(monkeypatch):
    """The arguments that were taken apart, in order."""
    jax = pytest.importorskip("jax")
    if Quantity not in _registered:
        jax.tree_util.register_pytree_node(
            Quantity, lambda q: ((q.value,), q.unit), lambda unit, parts: Quantity(parts[0], unit)
        )
        _registered.add(Quantity)
    found, key = [], _jit.Compiled.key
    monkeypatch.setattr(
        _jit.Compiled, "key", lambda self, args, *rest: (found.append(args), key(self, args, *rest))[1]
    )
    return found


_registered = set()


def doubling():
    @plum.Dispatcher()
    def double(q: Quantity):
        return q.value + q.value

    plum_freeze.freeze(double)
    return double


def test_a_pytree_whose_static_fields_are_no_values_is_given_up(looked):
    # unxt: an orbit of eager steps took longer with jit than with dispatch only.
    import jax.numpy as jnp

    double = doubling()
    for n in range(50):
        assert double(Quantity(jnp.asarray(n), Unit())) == 2 * n
    assert len(looked) == _opaque.MOST_REFUSED
    assert "Unit" in str(plum_freeze.report(double))
    # Any other call is right as well, now that the type is given up: plainly.
    assert double(Quantity(jnp.asarray(4), "m")) == 8
    assert len(looked) == _opaque.MOST_REFUSED


def test_a_pytree_that_was_compiled_with_other_static_fields_is_not_given_up(looked):
    import jax.numpy as jnp

    double = doubling()
    for n in range(50):
        assert double(Quantity(jnp.asarray(n), Unit())) == 2 * n
        assert double(Quantity(jnp.asarray(n), "m")) == 2 * n
    (method,) = _table.table_of(double).methods.values()
    assert method.compiled == 1
    assert Quantity not in method.opaque


def test_nothing_of_jax_is_imported_while_jax_is_being_imported():
    # Importing JAX registers virtual subclasses, which may change decisions taken before it.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent("""
            import sys, types
            sys.modules["jax"] = types.ModuleType("jax")  # as it is at the start of its import
            from plum_freeze import _selftest
            assert not _selftest.can_run()
            assert not [name for name in sys.modules if name.startswith("jax.")]
        """)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr


def test_conversions_are_compared_once_where_nothing_is_frozen():
    # coordinax: its import took a second more, half of it to find what nobody was to be told.
    run("""
        import plum, plum_freeze
        from plum_freeze import _changes, _plum

        plum_freeze.install()
        assert plum.convert("a", str) == "a"
        compared, resolved = [], []
        decisions, methods_of = _changes.decisions, _plum.methods_of
        _changes.decisions = lambda *args: (compared.append(1), decisions(*args))[1]
        _plum.methods_of = lambda *args: (resolved.append(1), methods_of(*args))[1]
        for number in range(1, 11):
            plum.add_conversion_method(type(f"C{number}", (), {}), str, lambda c: "c")
            assert len(compared) == number
        assert len(resolved) == 10

        @plum.dispatch
        def f(x: str):
            return x

        plum_freeze.freeze(f, on_late="accept")
        plum.convert("a", str)
        del compared[:]
        plum.add_conversion_method(int, str, str)
        assert len(compared) == 2  # what changes is said before it happens
        assert plum.convert(1, str) == "1"
    """)
