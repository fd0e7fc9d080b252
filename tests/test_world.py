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
        assert child.f(1) == "new"
        assert int(call(X)) == 3

    def test_the_parents_attribute_is_another(self):
        p, child, call = self.frozen()
        p.Parent.f = lambda self, x: "new"
        assert child.f(1) == "new"
        assert int(call(X)) == 3
        del p.Parent.f
        with pytest.raises(plum.NotFoundLookupError):
            child.f(1)
