"""A `Cache` in a file: saved here, loaded there, and refused where the program is another one."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import plum
import pytest

import plum_freeze
from plum_freeze import Cache, FreezeError

PROGRAM = """
import enum
from typing import Annotated

import plum
from beartype.vale import Is

registry = plum.Dispatcher()
looks = []


def check(n):
    looks.append(n)
    return n > 0


class Shape:
    @registry
    def area(self, x: int):
        return "shape"


class Square(Shape):
    other = plum.Dispatcher()

    @other
    def area(self, x: str):
        return "square"


@registry
def f(x: list[int]):
    return "ints"


@registry
def f(x: Annotated[int, Is[lambda n: check(n)]]):
    return "positive"


@registry
def f(x: None, *more: float):
    return "nothing"


@registry
def f(x: Shape, y: int = 2):
    return f(y)


def program(x=1):
    failed = 0
    try:
        f("none takes it")
    except plum.NotFoundLookupError:
        failed = 1
    return [f([x]), f(None, 1.0), f(Square()), failed, Square().area(x)]
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Write, import and forget a module `shapes`; again, with an edit."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(old="", new=""):
        assert old in PROGRAM
        sys.modules.pop("shapes", None)
        plum.Function._instances[:] = [
            f for f in plum.Function._instances if getattr(f._f, "__module__", "") != "shapes"
        ]
        (tmp_path / "shapes.py").write_text(PROGRAM.replace(old, new))
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        import importlib

        importlib.invalidate_caches()
        return importlib.import_module("shapes")

    yield make
    sys.modules.pop("shapes", None)


@pytest.fixture
def saved(made, tmp_path):
    shapes = made()
    with Cache() as cache:
        result = shapes.program()
    path = tmp_path / "cache.json"
    cache.save(path)
    return path, result, [*cache]


def test_loaded_in_the_same_program(saved):
    path, result, steps = saved
    shapes = sys.modules["shapes"]
    cache = Cache.load(path)
    assert [*cache] == steps
    assert len(cache) == 7
    shapes.looks.clear()
    with cache:
        assert shapes.program() == result
    assert shapes.looks == []
    with cache.replay():
        assert shapes.program() == result


def test_loaded_in_another_process(saved, tmp_path):
    path, result, _ = saved
    program = f"""
        import plum_freeze, shapes
        cache = plum_freeze.Cache.load({str(path)!r})
        with cache:
            print(shapes.program(), shapes.looks)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stderr, done.stdout) == ("", f"{result} []\n")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("def f(x: list[int])", "def f(x: list[float])", r"has no method shapes.f\(list\[int\]\) any more"),
        ("def f(x: list[int])", "def f(x: list[float])", r"has a new method shapes.f\(list\[float\]\)"),
        ("\ndef program", "\n@registry\ndef f(x: list):\n    return 0\n\ndef program", r"has a new method shapes.f\(list\)"),
        ("@registry\ndef f(x: list[int])", "@registry(precedence=3)\ndef f(x: list[int])", r"list\[int\]\) precedence 3"),
        ("def area(self, x: str)", "def surface(self, x: str)", "defines no dispatched function Square.area"),
        ("class Square(Shape)", "class Square", "inherits nothing"),
    ],
)  # fmt: skip
def test_a_program_that_has_changed_is_refused(saved, made, old, new, what):
    made(old, new)
    with pytest.raises(FreezeError, match=what) as caught:
        Cache.load(saved[0])
    for fact in (str(saved[0]), "another program", "record again"):
        assert fact in str(caught.value)


def test_a_parents_method_that_moved_is_refused(saved, made):
    made("class Square(Shape):", "class Middle(Shape):\n    def area(self, x):\n        return 0\n\n\nclass Square(Middle):")
    with pytest.raises(FreezeError, match="inherited shapes.Shape.area, and inherits shapes.Middle.area"):
        Cache.load(saved[0])


def test_a_module_that_is_not_imported_is_refused_and_not_imported(saved):
    del sys.modules["shapes"]
    with pytest.raises(FreezeError, match="the module shapes is not imported"):
        Cache.load(saved[0])
    assert "shapes" not in sys.modules


def test_another_plum_is_refused(saved):
    path = saved[0]
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "plum": "2.0.0"}))
    with pytest.raises(FreezeError, match=f"plum-dispatch was 2.0.0, and is {plum.__version__}"):
        Cache.load(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", 'has no "format"'),
        ('{"format": "plum_freeze.Cache", "version": 9}', "it has version 9"),
        ('{"format": "plum_freeze.Cache", "version": 1}', r"missing or wrong \(KeyError: 'plum'\)"),
        (f'{{"format": "plum_freeze.Cache", "version": 1, "plum": "{plum.__version__}", "functions": [], "choices": [], "steps": [0]}}', "IndexError"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(tmp_path, text, why):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(FreezeError, match=why):
        Cache.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FreezeError, match="No such file"):
        Cache.load(tmp_path / "none.json")


def test_a_registration_after_loading_parts(saved):
    shapes = sys.modules["shapes"]
    cache = Cache.load(saved[0])

    def f(x: list):
        return "list"

    f.__annotations__["x"] = list
    shapes.registry(f)
    with pytest.raises(plum_freeze.ReplayError, match="another method may be the right one"), cache:
        shapes.program()


def test_a_class_that_cannot_be_found_by_name_counts_as_any(made, tmp_path):
    shapes = made()

    class Local(shapes.Shape):
        pass

    path = tmp_path / "x.json"
    with Cache() as cache:
        shapes.f(Local())
    cache.save(path)
    cache = Cache.load(path)
    assert next(iter(cache)).startswith("shapes.f(?) -> ")

    namesake = type("Shape", (shapes.Shape,), {"__module__": "shapes"})  # shapes.Shape is another
    with Cache() as other:
        shapes.f(namesake())
    other.save(path)
    assert next(iter(Cache.load(path))).startswith("shapes.f(?) -> ")

    def f(x: str, y: str):
        return "two"

    f.__annotations__.update(x=str, y=str)
    with cache:
        shapes.f(Local())
    shapes.registry(f)
    with pytest.raises(plum_freeze.ReplayError, match="another method may be"), cache:
        shapes.f(Local())


def test_what_has_no_name_of_its_own_cannot_be_saved(tmp_path):
    def make():
        @plum.Dispatcher()
        def f(x: int):
            return 1

        return f

    one, two = make(), make()
    with Cache() as cache:
        one(1)
        two(1)
    with pytest.raises(FreezeError, match="several dispatched functions have this name"):
        cache.save(tmp_path / "x.json")
    with pytest.raises(FreezeError, match="nothing has been recorded"):
        Cache().save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_two_methods_that_read_the_same_cannot_be_saved(tmp_path):
    from typing import Annotated

    from beartype.vale import Is

    dispatch = plum.Dispatcher()

    def make(check):
        def alike(x):
            return check(x)

        alike.__annotations__["x"] = Annotated[int, Is[check]]
        return dispatch(alike)

    make(type("Even", (), {"__call__": lambda self, n: n % 2 == 0})())
    f = make(type("Even", (), {"__call__": lambda self, n: n % 2 == 1})())
    with Cache() as cache:
        f(2)
    with pytest.raises(FreezeError, match="the same name and signature in writing"):
        cache.save(tmp_path / "x.json")
