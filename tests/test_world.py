"""What changes decisions without being a registration: ABCs, promised types, parent classes."""

import abc
import sys
import types

import jax
import jax.numpy as jnp
import plum
import pytest

import plum_freeze

X = jnp.asarray(3.0)


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, v):
        self.v = v

    def tree_flatten(self):
        return (self.v,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def fresh_box():
    """A pytree class that no ABC knows yet."""
    cls = type("Fresh", (Box,), {})
    jax.tree_util.register_pytree_node_class(cls)
    return cls(X)


def kinds(*hints):
    """A function that says which of the hints it chose, 0 for none."""
    dispatch = plum.Dispatcher()

    @dispatch
    def kind(m: object):
        return 0

    for i, hint in enumerate(hints):
        kind.dispatch(closure(i + 1, hint))
    return kind


def closure(answer, hint):
    def kind(m):
        return answer

    kind.__annotations__["m"] = hint
    return kind


@pytest.mark.parametrize("on_late", ["warn", "raise", "accept"])
@pytest.mark.parametrize("frozen", [True, False])
def test_a_virtual_subclass(on_late, frozen):
    class Metric(abc.ABC):  # noqa: B024
        pass

    kind = kinds(Metric)
    other = kinds(str)
    plum_freeze.freeze(other, *([kind] if frozen else []), on_late=on_late)
    box = fresh_box()
    call = jax.jit(lambda m: kind(m) + 0 * m.v)
    assert (kind(box) if frozen else 0, int(call(box))) == (0, 0)
    Metric.register(type(box))
    assert isinstance(box, Metric)
    if frozen:  # plain plum stays stale in its own cache, and so its traces
        assert kind(box) == 1
        assert int(call(box)) == 1


def test_a_virtual_subclass_of_a_return_type():
    class Result(abc.ABC):  # noqa: B024
        pass

    class Raw:
        pass

    dispatch = plum.Dispatcher()

    @dispatch
    def make(x: int) -> Result:
        return Raw()

    plum_freeze.freeze(make)
    with pytest.raises(TypeError, match="Cannot convert"):
        make(1)
    Result.register(Raw)
    assert type(make(1)) is Raw


def test_the_token_is_watched_as_well(monkeypatch):
    class Metric(abc.ABC):  # noqa: B024
        pass

    kind = kinds(Metric)
    plum_freeze.freeze(kind)
    box = fresh_box()
    call = jax.jit(lambda m: kind(m) + 0 * m.v)
    assert (kind(box), int(call(box))) == (0, 0)
    abc._abc_register(Metric, type(box))  # behind every patch
    kind(object)  # any miss notices
    assert (kind(box), int(call(box))) == (1, 1)


def test_a_promised_type():
    """Plum itself cannot call a function before its promises are kept; freezing it must not try."""
    promise = plum.PromisedType("Later")
    kind = kinds(promise)
    plum_freeze.freeze(kind)
    box = fresh_box()
    promise.deliver(type(box))
    call = jax.jit(lambda m: kind(m) + 0 * m.v)
    assert (kind(box), int(call(box)), kind(3)) == (1, 1, 0)


@pytest.mark.parametrize("on_late", ["raise", "accept"])
@pytest.mark.parametrize("text", [True, False])
def test_a_late_method_about_a_promised_type(on_late, text):
    promise = plum.PromisedType("Later")
    kind = kinds()
    plum_freeze.freeze(kind, on_late=on_late)
    box = fresh_box()
    call = jax.jit(lambda m: kind(m) + 0 * m.v)
    assert (kind(box), int(call(box))) == (0, 0)
    late = closure(1, promise)
    if text:
        late.__annotations__["m"] = "promise"
        late = types.FunctionType(late.__code__, {"promise": promise}, "kind", None, late.__closure__)
        late.__annotations__ = {"m": "promise"}
        late.__module__ = __name__
    if on_late == "raise":
        with pytest.raises(plum_freeze.LateRegistrationError):
            kind.dispatch(late)
        assert (kind(box), int(call(box))) == (0, 0)
    else:
        kind.dispatch(late)
        promise.deliver(type(box))
        assert (kind(box), int(call(box))) == (1, 1)


@pytest.mark.parametrize("called_before", [True, False])
def test_a_module_type(called_before, tmp_path, monkeypatch):
    name = f"delivering_{called_before}"
    (tmp_path / f"{name}.py").write_text("class Later:\n    v = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    kind = kinds(plum.ModuleType(name, "Later"))
    plum_freeze.freeze(kind)
    call = jax.jit(lambda x: x * 0 + kind(vessel[0]))
    vessel = [3]
    if called_before:
        assert (kind(3), int(call(X))) == (0, 0)
    module = __import__(name)
    vessel = [module.Later()]
    assert kind(module.Later()) == 1
    assert kind(3) == 0
    del sys.modules[name]


# What resolves a function's signatures, without a call of it.
RESOLVES = {
    "methods": lambda kind: kind.methods,
    "doc": lambda kind: kind.__doc__,
    "resolve_method": lambda kind: kind.resolve_method((3,)),
    "invoke": lambda kind: kind.invoke(int),
    "a call": lambda kind: kind(3),
}
ASKS = {
    "a call": lambda kind, value: kind(value),
    "methods": lambda kind, value: [m.implementation(value) for m in kind.methods][-1],
    "resolve_method": lambda kind, value: kind.resolve_method((value,))[0](value),
    "invoke": lambda kind, value: kind.invoke(type(value))(value),
}


@pytest.fixture
def delivering(tmp_path, monkeypatch):
    """The name of a module that can be imported, with a class `Later` in it."""
    name = f"delivering_{tmp_path.parent.name}_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text("class Later:\n    v = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize("frozen_first", [True, False])
@pytest.mark.parametrize("resolves", RESOLVES)
@pytest.mark.parametrize("asks", ASKS)
def test_a_promise_is_kept_before_anybody_calls(delivering, frozen_first, resolves, asks):
    """Plum resolved the signature before the import, by whatever means: it is resolved again."""
    hint = str | plum.ModuleType(delivering, "Later")
    kind = kinds(hint)
    if frozen_first:
        plum_freeze.freeze(kind, on_late="accept")
    RESOLVES[resolves](kind)
    if not frozen_first:
        plum_freeze.freeze(kind, on_late="accept")
    kind.dispatch(closure(2, hint))  # the same signature, pending: the same once both are resolved
    later = __import__(delivering).Later()
    assert ASKS[asks](kind, later) == 2
    assert [m.implementation(later) for m in kind.methods] == [0, 2]


@pytest.mark.parametrize("asks", ASKS)
def test_a_promise_that_was_kept_before_the_freeze(delivering, asks):
    promise = plum.ModuleType(delivering, "Later")
    kind = kinds(promise)
    assert kind(3) == 0  # plum resolves the signature
    later = __import__(delivering).Later()
    promise.retrieve()  # as any other annotation with it does
    plum_freeze.freeze(kind)
    assert ASKS[asks](kind, later) == 1


def test_a_promise_that_is_kept_while_plum_resolves(monkeypatch, delivering):
    """Nothing tells of a module that is not imported, until plum looks for it itself."""
    hint = str | plum.ModuleType("by_hand", "Later")
    kind, other = kinds(hint), kinds(hint)
    assert (kind(3), other(3)) == (0, 0)
    kind.dispatch(closure(2, int))
    kind.dispatch(closure(3, hint))
    kind.dispatch(closure(4, float))
    plum_freeze.freeze(kind, other)  # pending as it is
    monkeypatch.setitem(sys.modules, "by_hand", __import__(delivering))
    later = sys.modules["by_hand"].Later()
    assert (kind(later), kind(3), kind(3.0), kind("s"), kind(None)) == (3, 2, 4, 3, 0)
    assert len(kind.methods) == 4
    assert other(later) == 1


def test_what_fails_when_a_module_is_imported_does_not_stop_the_import(delivering):
    kind = kinds(plum.ModuleType(delivering, "NoSuchClass"))
    plum_freeze.freeze(kind)
    assert kind(3) == 0
    module = __import__(delivering)
    assert kind(module.Later()) == 0


def test_a_signature_that_keeps_its_promise_for_good(delivering):
    """Plum does not look again at a signature that was given as such. Neither do we, for ever."""
    promise = plum.ModuleType(delivering, "Later")
    dispatch = plum.Dispatcher()

    @dispatch.multi((object,))
    def kind(m):
        return 0

    @dispatch.multi((promise,))
    def kind(m):
        return 1

    plum_freeze.freeze(kind, on_late="accept")
    assert kind(3) == 0
    later = __import__(delivering).Later()
    assert kind(later) == 0
    before = plum_freeze.report(kind).as_dict()["invalidation"]["moves"]
    kind.dispatch(closure(2, str))
    assert (kind("s"), kind(later)) == (2, 0)
    assert plum_freeze.report(kind).as_dict()["invalidation"]["moves"] == before


class TestParents:
    """The child's cache holds what the parent had."""

    def program(self):
        dispatch = plum.Dispatcher()
        namespace = types.ModuleType(f"parents_{id(dispatch)}").__dict__
        sys.modules[namespace["__name__"]] = types.ModuleType(namespace["__name__"])
        namespace["dispatch"] = dispatch
        namespace["jax"] = jax
        source = """
class Parent:
    @dispatch
    def f(self, x: object):
        return "parent"

class Middle(Parent):
    pass

class Child(Middle):
    @dispatch
    def f(self, x: str):
        return "child"
"""
        exec(source, namespace)
        return types.SimpleNamespace(**{k: namespace[k] for k in ("Parent", "Middle", "Child", "dispatch")})

    def frozen(self, on_late="accept"):
        p = self.program()
        plum_freeze.freeze(p.Parent.f, p.Child.__dict__["f"], on_late=on_late)
        child = p.Child()
        answers = {"parent": 1, "child": 2, "new": 3}
        call = jax.jit(lambda x: x * 0 + answers[child.f(1)])
        assert (child.f(1), child.f("s"), int(call(X))) == ("parent", "child", 1)
        return p, child, call

    def test_the_parent_is_extended(self):
        p, child, call = self.frozen()

        def f(self, x: int):
            return "new"

        p.Parent.f.dispatch(f)
        assert (child.f(1), child.f("s"), int(call(X))) == ("new", "child", 3)

    def test_the_parents_method_is_replaced(self):
        p, child, call = self.frozen()

        def f(self, x: object):
            return "new"

        p.Parent.f.dispatch(f)
        assert (child.f(1), int(call(X))) == ("new", 3)

    def test_the_child_is_extended(self):
        p, child, call = self.frozen()

        def f(self, x: int):
            return "new"

        p.Child.__dict__["f"].dispatch(f)
        assert (child.f(1), int(call(X))) == ("new", 3)

    def test_a_class_in_between_gets_one(self):
        p, child, call = self.frozen()
        p.Middle.f = lambda self, x: "new"
        assert int(call(X)) == 3
        assert child.f(1) == "new"
        assert int(call(X)) == 3

    def test_the_child_gets_another_parent(self):
        p, child, call = self.frozen()
        p.Child.__bases__ = (type("Parent", (), {"f": lambda self, x: "new"}),)
        assert int(call(X)) == 3
        assert (child.f(1), child.f("s"), int(call(X))) == ("new", "child", 3)

    def test_the_parents_attribute_is_another(self):
        p, child, call = self.frozen()
        p.Parent.f = lambda self, x: "new"
        assert int(call(X)) == 3
        assert child.f(1) == "new"
        assert int(call(X)) == 3
        del p.Parent.f
        with pytest.raises(plum.NotFoundLookupError):
            int(call(X))
        with pytest.raises(plum.NotFoundLookupError):
            child.f(1)
