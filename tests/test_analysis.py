"""Ambiguous pairs, methods that are never chosen, hints that cost speed: against plum itself."""

from __future__ import annotations

import enum
import itertools
import random
import typing
from typing import Annotated, Any, Literal, Optional, Union

import numpy as np
import plum
import pytest
from beartype.vale import Is

from plum_freeze import _ambiguity, _analysis, _facts, _layout, _overlap


def table(*signatures, precedence=None):
    """A fresh function with one method for each tuple of hints; its methods."""
    function = None
    for i, hints in enumerate(signatures):

        def f(*args):
            return None

        signature = hints if isinstance(hints, plum.Signature) else plum.Signature(*hints)
        if precedence:
            signature.precedence = precedence[i]
        if function is None:
            function = plum.Function(f, owner=None)
        # A function of its own for each, so that they are told apart.
        function.register(lambda *args: None, signature=signature)
    return function


def found(function, kind):
    methods = _facts.methods_of(function).comparable
    return [f for f in _ambiguity.findings(function, methods) if f.kind == kind]


def certain(function):
    return [f for f in found(function, "ambiguous") if not f.possible]


class A: ...


class B: ...


class C(A): ...


class D(A): ...


class CD(C, D): ...


class E1(A): ...


class Colour(enum.Enum):
    RED = 1


class Solid1:
    __slots__ = ("a",)


class Solid2:
    __slots__ = ("b",)


# -- against plum --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_every_ambiguous_call_is_found_and_nothing_else(seed):
    rng = random.Random(seed)
    classes = [A, B, C, D, CD, int, bool, str]
    hints = [*classes, Any, object, Union[A, int], Optional[str], C | D]
    count = rng.choice((1, 2))
    signatures = list(
        dict.fromkeys(tuple(rng.choice(hints) for _ in range(count)) for _ in range(7))
    )
    levels = [rng.choice((0, 0, 0, 1)) for _ in signatures]
    function = table(*signatures, precedence=levels)
    function._resolve_pending_registrations()
    methods = list(function._resolver.methods)

    raising = set()
    for types in itertools.product([*classes, type(None), object], repeat=count):
        try:
            function._resolver.resolve(plum.Signature(*types))
        except plum.AmbiguousLookupError as error:
            # One with a lower precedence stands by: it is not for it that plum cannot decide.
            highest = max(m.signature.precedence for m in error.methods)
            tied = [m for m in error.methods if m.signature.precedence == highest]
            raising |= {
                frozenset({methods.index(a), methods.index(b)})
                for a, b in itertools.combinations(tied, 2)
            }
        except plum.NotFoundLookupError:
            pass
    texts = [_ambiguity._compare.method_text(m) for m in methods]
    told = {
        frozenset({i for i, text in enumerate(texts) if text in f.signatures})
        for f in certain(function)
    }
    assert {pair for pair in told if len(pair) == 2} == raising


@pytest.mark.parametrize("seed", range(40))
def test_what_is_never_chosen_is_never_chosen(seed):
    rng = random.Random(seed)
    classes = [A, B, C, D, CD, E1, int, bool]
    hints = [*classes, C | D, A | int, Union[A, B]]
    signatures = list(dict.fromkeys((rng.choice(hints),) for _ in range(8)))
    function = table(*signatures)
    function._resolve_pending_registrations()
    methods = list(function._resolver.methods)
    chosen = set()
    for cls in classes:
        try:
            chosen.add(id(function._resolver.resolve(plum.Signature(cls))))
        except LookupError:
            pass
    texts = {_ambiguity._compare.method_text(m): id(m) for m in methods}
    for finding in found(function, "unreachable"):
        assert texts[finding.signatures[0]] not in chosen


# -- ambiguous pairs -----------------------------------------------------------------------------


def test_the_classic_pair_with_an_example_that_raises():
    function = table((A, Any), (Any, A))
    (finding,) = certain(function)
    assert finding.example.count(".A") == 2
    with pytest.raises(plum.AmbiguousLookupError):
        function(A(), A())


def test_a_third_method_that_covers_the_overlap_decides():
    assert not certain(table((A, Any), (Any, A), (A, A)))


def test_precedence_decides():
    assert not certain(table((A, Any), (Any, A), precedence=[0, 1]))
    assert certain(table((A, Any), (Any, A), precedence=[1, 1]))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (int, str), (int, float), (bool, str), (list, dict), (type(None), A), (Colour, A),
        (np.ndarray, int), (Literal["a"], Literal["b"]), (Literal[1], bool), (type[A], type[B]),
        (list[int], dict), (Solid1, Solid2),
    ],
)  # fmt: skip
def test_disjoint_hints_are_not_even_possible(left, right):
    assert found(table((left,), (right,)), "ambiguous") == []


@pytest.mark.parametrize(
    ("left", "right", "value"),
    [
        (list[int], list[str], []),
        (C, D, CD()),
        (Literal["a", "b"], Literal["b", "c"], "b"),
        (Union[int, str], Union[str, float], "x"),
        (Union[A, int], Union[B, bool], True),
    ],
)
def test_overlaps_that_are_certain(left, right, value):
    function = table((left,), (right,))
    (finding,) = certain(function)
    assert finding.example
    with pytest.raises(plum.AmbiguousLookupError):
        function(value)


def test_two_classes_that_a_third_could_join_are_possible_and_one_line():
    (finding,) = found(table((A,), (B,), (Solid1,)), "ambiguous")
    assert finding.possible
    assert finding.count == 3
    assert "class Both(" in finding.example


def test_jaxtyping_and_the_bare_array_are_ambiguous_in_plum():
    jax = pytest.importorskip("jax")
    from jaxtyping import Array, Float, Int

    function = table((Float[Array, "n 3"],), (Array,))
    (finding,) = certain(function)
    assert "float32[2,3]" in finding.example
    with pytest.raises(plum.AmbiguousLookupError):
        function(jax.numpy.ones((2, 3)))
    assert not found(table((Float[Array, "n"],), (Int[Array, "n"],)), "ambiguous")
    assert not found(table((Float[Array, "n"],), (Float[Array, "n m"],)), "ambiguous")
    assert not found(table((Float[Array, "2"],), (Float[Array, "3"],)), "ambiguous")
    assert certain(table((Float[Array, "3 n"],), (Float[Array, "n 4"],)))
    assert certain(table((Float[Array, "*a 3"],), (Float[Array, "2 *b"],)))


def test_varargs_meet_where_both_take_any_number():
    a = plum.Signature(varargs=int)
    b = plum.Signature(varargs=str)
    function = table(a, b)
    (finding,) = certain(function)
    assert finding.example == "()"
    with pytest.raises(plum.AmbiguousLookupError):
        function()
    assert not certain(table((int,), plum.Signature(varargs=int)))


def test_a_method_with_defaults_is_not_ambiguous_with_itself():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: A, y: int = 1, z: int = 2):
        return 1

    assert found(f, "ambiguous") == []


def test_many_methods_are_bounded(monkeypatch):
    monkeypatch.setattr(_ambiguity, "MOST_PAIRS", 10)
    classes = [type(f"K{i}", (A,), {}) for i in range(5)]
    function = table(*itertools.product([Any, *classes], repeat=2))
    texts = [f.text for f in found(function, "ambiguous")]
    assert "only the first 10 overlapping pairs were compared" in texts


# -- never chosen --------------------------------------------------------------------------------


def test_a_union_whose_members_all_have_their_own_method():
    (finding,) = found(table((int | str,), (int,), (str,)), "unreachable")
    assert finding.signatures[0] == "(int | str)"
    assert len(finding.signatures) == 3


def test_a_union_with_a_member_left_is_reachable():
    assert not found(table((int | str | float,), (int,), (str,)), "unreachable")


def test_lower_precedence_with_the_same_types():
    (finding,) = found(table((int,), (int,), precedence=[0, 1]), "unreachable")
    assert finding.signatures == ["(int)", "(int)"]


def test_a_registration_that_was_replaced():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return 1

    @dispatch
    def f(x: int):
        return 2

    (finding,) = found(f, "unreachable")
    assert "later registration has the same signature" in finding.text
    assert len(finding.places) == 2


def test_the_same_cell_again_replaces_nothing_to_speak_of():
    dispatch = plum.Dispatcher()

    def cell():
        @dispatch
        def f(x: int):
            return 1

        return f

    cell()
    assert found(cell(), "unreachable") == []


# -- what decides --------------------------------------------------------------------------------


def decides(*hints):
    methods = _facts.methods_of(table(*[(hint,) for hint in hints])).comparable
    return {d.on: d for d in _analysis.depends(methods)}


def test_plain_classes_are_decided_by_type():
    assert decides(int, A, Any, Optional[str]) == {}


def test_hints_that_plum_resolves_at_each_call_say_what_to_write():
    assert "write list" in decides(list[int])["not cacheable"].why
    assert (
        "write the bare type" in decides(Annotated[int, Is[lambda x: x > 0]])["not cacheable"].why
    )


def test_values_classes_and_shapes():
    assert set(decides(Literal["a"])) == {"value"}
    assert set(decides(type[A])) == {"which class"}
    pytest.importorskip("jax")
    from jaxtyping import Array, Float

    assert set(decides(Float[Array, "3"])) == {"dtype and shape"}
    assert set(decides(Array)) == set()
    methods = _facts.methods_of(table((Float[Array, "3"],), (list[int],))).comparable
    assert _analysis.in_short(_analysis.depends(methods)) == "type, dtype, shape; not cacheable: 1"


# -- could a class derive from both? --------------------------------------------------------------


class Meta(type): ...


class WithMeta(metaclass=Meta): ...


class Dict(dict): ...


class P: ...


class Q: ...


class Box(typing.Generic[typing.TypeVar("T")]): ...


class First(P, Q): ...


class Second(Q, P): ...


_CLASSES = [
    A, B, C, P, Q, Solid1, Solid2, Dict, First, Second, WithMeta, Colour, enum.Enum, Box, int,
    str, float, bool, bytes, list, tuple, dict, set, complex, type(None), type, Exception, OSError,
    KeyError, np.ndarray, np.float64, np.generic, type(lambda: 0), range,
]  # fmt: skip


def _exists(left, right):
    """Whether Python makes the class."""
    meta = type(left) if issubclass(type(left), type(right)) else type(right)
    for bases in ((left, right), (right, left)):
        try:
            names = enum.EnumType.__prepare__("T", bases) if issubclass(meta, enum.EnumMeta) else {}
            meta("T", bases, names)
        except TypeError:
            continue
        return True
    return False


def test_whether_a_class_can_derive_from_both_is_what_python_says():
    wrong = [
        pair
        for pair in itertools.combinations(_CLASSES, 2)
        if _layout.can_combine(*pair) != _exists(*pair)
    ]
    assert not wrong


def test_an_example_counts_only_if_it_matches_both():
    for left, right in itertools.combinations([int, A, list[int], Literal[1], Any, type[A]], 2):
        for example in _overlap.overlap(left, right):
            assert example.matches(left)
            assert example.matches(right)
