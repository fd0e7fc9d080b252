"""Slots of CPython's classes that are set by hand: what changes is the time, and nothing else."""

from __future__ import annotations

import pytest

from plum_freeze import _slots, _table


def subscript(cls):
    """The address of the C code that `instance[key]` runs."""
    return _slots._words(_slots._words(id(cls))[_slots._AS_MAPPING])[1]


def some_class():
    class Doubles(dict):
        def __missing__(self, key):
            return key * 2

    return Doubles


def answers(cls):
    """What look-ups of all kinds give."""
    found = cls({1: "one"})
    with pytest.raises(TypeError) as unhashable:
        found[[]]
    return found[1], found[3], str(unhashable.value)


def test_a_look_up_runs_the_code_of_dict():
    cls = some_class()
    expected = answers(cls)
    assert subscript(cls) != subscript(dict)
    _slots.subscript_as_dict(cls)
    assert subscript(cls) == subscript(dict)
    assert answers(cls) == expected == ("one", 6, "unhashable type: 'list'")


def test_without_missing_a_key_is_not_found():
    class Plain(dict):
        pass

    _slots.subscript_as_dict(Plain)
    with pytest.raises(KeyError, match="7"):
        Plain()[7]


def test_subclasses_and_changes_of_class_are_python_s_own():
    cls = some_class()
    _slots.subscript_as_dict(cls)

    class Observed(cls):
        __slots__ = ()

        def __getitem__(self, key):
            return "observed"

    class Inherits(cls):
        pass

    found = cls({1: "one"})
    found.__class__ = Observed
    assert found[1] == "observed"
    found.__class__ = cls
    assert (found[1], found[2], Inherits()[5]) == ("one", 4, 10)
    cls.__getitem__ = lambda self, key: "patched"
    assert found[1] == "patched"
    del cls.__getitem__
    assert found[1] == "one"


def test_a_class_that_is_laid_out_in_another_way_is_left_alone(monkeypatch):
    monkeypatch.setattr(_slots, "_BASICSIZE", _slots._BASICSIZE + 1)
    cls = some_class()
    before = subscript(cls)
    _slots.subscript_as_dict(cls)
    assert subscript(cls) == before
    assert answers(cls)[:2] == ("one", 6)


def test_tables_have_it():
    assert subscript(_table.Table) == subscript(dict)
