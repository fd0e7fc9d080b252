"""registrations(): module, file, line, phase and order, for whatever makes a registration."""

import doctest
import gc
import importlib
import shutil
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import plum
import pytest

import plum_freeze
from plum_freeze import _hook, _origin, _plum, _record, _table

PACKAGES = Path(__file__).parent / "packages"
HERE = __file__


@pytest.fixture
def name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"dispatching_{tmp_path.name.replace('-', '_')}"
    shutil.copytree(PACKAGES / "dispatching", tmp_path / name)
    importlib.invalidate_caches()
    plum_freeze.install(name)
    yield name
    for each in [each for each in sys.modules if name in each]:
        del sys.modules[each]


@pytest.fixture
def dispatch():
    plum_freeze.install("nobody")
    return plum.Dispatcher()


def line_of(source):
    """The line of this file that says `source`."""
    lines = Path(HERE).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip() == source)


def facts(found):
    return [(r.module, Path(r.file).name, r.line, r.phase) for r in found]


# -- the phases ----------------------------------------------------------------------------------


def test_each_phase_with_module_file_line_and_order(tmp_path, monkeypatch, name):
    old = f"old_{name}"
    (tmp_path / f"{old}.py").write_text(
        "import plum\n@plum.Dispatcher()\ndef f(x: int): return 'old'\n"
    )
    # Registered while nobody watches.
    with monkeypatch.context() as patch:
        patch.setattr(plum_freeze._late, "watching", threading.Event())
        early = importlib.import_module(old)
    assert _record.all_of({id(early.f)}) == []
    plum_freeze.freeze(early, on_late="accept")  # adopts it

    sample = importlib.import_module(name)
    plum_freeze.freeze(sample, on_late="accept")

    @sample.dispatch
    def f(x: bytes):
        return "bytes"

    @plum.Dispatcher()
    def new(x: int):
        return x

    found = plum_freeze.registrations(name, early.f, new)
    init = str(tmp_path / name / "__init__.py")
    assert [(r.function, r.signature, r.module, r.file, r.line, r.phase) for r in found] == [
        (early.f, "(x: int)", old, str(tmp_path / f"{old}.py"), 2, "adopted"),
        (sample.f, "(x: object)", name, init, 8, "import"),
        (sample.g, "(x: object)", name, init, 13, "import"),
        (sample.f, "(x: bytes)", __name__, HERE, line_of("@sample.dispatch"), "late"),
        (new, "(x: int)", __name__, HERE, line_of("@plum.Dispatcher()"), "call"),
    ]
    orders = [r.order for r in found]
    assert orders == sorted(set(orders))
    assert str(found[1]) == f"{name}.f(x: object)  {name} ({init}:8), import"
    assert found[3].method(b"") == "bytes"


def test_none_lost_and_none_doubled_compared_with_plum(name):
    for function in (_plum.rules_of_conversion(), _plum.rules_of_promotion()):
        table = _table.table_of(function)
        if table is not None:
            table.invalidate()  # with a decision of an earlier test in the record they are late
    before = {id(f) for f in _plum.functions()}
    sample = importlib.import_module(name)
    for module in ("late", "half", "outer", "kinds", "same"):
        importlib.import_module(f"{name}.{module}")
    made = [f for f in _plum.functions() if id(f) not in before]
    assert {f.__name__ for f in made} == {"f", "g", "measure"}
    for function in made:
        recorded = _record.all_of({id(function)})
        entries = _plum.entries(function)
        assert sorted(id(r.method) for r in recorded) == sorted(
            id(e.implementation) for e in entries
        )
        for registration in recorded:
            code = registration.method.__code__
            assert registration.file == code.co_filename
            assert registration.file.endswith(registration.module.rpartition(".")[2] + ".py") or (
                registration.module == name
            )
    # Conversions and promotion rules stand on plum's own functions.
    on_plums = [r for r in plum_freeze.registrations(name) if r.function not in made]
    assert [(r.function.__name__, r.signature) for r in on_plums] == [
        ("_convert", f"(obj: {name}.kinds.Metres, _: float)"),
        ("_promotion_rule", f"(t1: {name}.kinds.Metres, t2: int)"),
        ("_promotion_rule", f"(t1: int, t2: {name}.kinds.Metres)"),
    ]
    assert facts(on_plums) == [
        (f"{name}.kinds", "kinds.py", 31, "import"),
        *[(f"{name}.kinds", "kinds.py", 36, "import")] * 2,
    ]
    assert sample.f(sample.same.CLASSES[1]()) == "config"


def test_a_loop_for_classes_of_one_name_is_not_one_registration(name):
    sample = importlib.import_module(name)
    importlib.import_module(f"{name}.same")
    found = [r for r in plum_freeze.registrations(name) if r.module == f"{name}.same"]
    assert [(r.signature, r.line) for r in found] == [
        (f"(x: {name}.same.make.<locals>.Config)", 16)
    ] * 3
    assert len({id(r.method) for r in found}) == 3
    assert len(plum_freeze.registrations(sample.f)) == 4


def test_classes_of_one_name_from_different_modules_are_two_registrations(dispatch):
    def register(cls):
        @dispatch
        def f(x: cls):
            return cls.__module__

        return f

    left, right = (type("Config", (), {"__module__": module}) for module in ("left", "right"))
    for cls in (left, right, left, right):
        f = register(cls)
    assert len(plum_freeze.registrations(f)) == 2
    assert (f(left()), f(right())) == ("left", "right")


# -- who makes it --------------------------------------------------------------------------------


def test_inside_a_test_function(dispatch):
    @dispatch
    def f(x: int):  # inside a test function
        return x

    (found,) = plum_freeze.registrations(f)
    line = line_of("def f(x: int):  # inside a test function") - 1
    assert (found.module, found.file, found.line, found.phase) == (__name__, HERE, line, "call")


def test_in_a_thread(dispatch):
    result = []

    def work():
        @dispatch
        def f(x: int):  # in a thread
            return x

        result.append(f)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    line = line_of("def f(x: int):  # in a thread") - 1
    assert facts(plum_freeze.registrations(result[0])) == [
        (__name__, Path(HERE).name, line, "call")
    ]


def test_threads_that_register_at_once_lose_none(dispatch):
    @dispatch
    def f(x: object):
        return x

    classes = [[type(f"C{i}_{j}", (), {}) for j in range(20)] for i in range(8)]
    barrier = threading.Barrier(8)

    def work(mine):
        barrier.wait()
        for cls in mine:

            def method(x):
                return x

            method.__annotations__["x"] = cls
            f.dispatch(method)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(mine,)) for mine in classes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    found = plum_freeze.registrations(f)
    assert len(found) == 161
    assert {r.signature.rpartition(".")[2] for r in found[1:]} == {
        f"C{i}_{j})" for i in range(8) for j in range(20)
    }
    assert len({r.order for r in found}) == 161


def test_in_exec(dispatch, tmp_path):
    namespace = {"dispatch": dispatch, "__name__": "somewhere"}
    exec(compile("\n\n@dispatch\ndef f(x: int): return x", "<some text>", "exec"), namespace)
    found = plum_freeze.registrations(namespace["f"])
    assert facts(found) == [("somewhere", "<some text>", 3, "call")]
    del namespace["__name__"]  # then it is that of builtins, as Python fills it in
    exec(compile("@dispatch\ndef f(x: str): return x", "<other text>", "exec"), namespace)
    assert facts(plum_freeze.registrations(namespace["f"]))[1][1:] == ("<other text>", 1, "call")


def test_in_a_doctest(dispatch):
    text = """
    >>> @dispatch
    ... def f(x: int): return x
    >>> f(1)
    1
    """
    globs = {"dispatch": dispatch, "__name__": __name__}
    test = doctest.DocTestParser().get_doctest(text, globs, "sample", "sample.py", 1)
    runner = doctest.DocTestRunner()
    for _ in range(3):
        runner.run(test, clear_globs=False)
        found = plum_freeze.registrations(dispatch.functions["f"])
        assert facts(found) == [(__name__, "<doctest sample[0]>", 1, "call")]
    assert runner.failures == 0


def test_what_is_no_python_function(dispatch):
    @dispatch
    def f(x: object):
        return "object"

    class Callable:
        __name__ = "f"

        def __call__(self, x: int) -> str:
            return "int"

    f.register(Callable(), signature=plum.Signature(int))
    found = plum_freeze.registrations(f)[1]
    assert found.signature == "(int)"
    assert facts([found]) == [
        (
            __name__,
            Path(HERE).name,
            line_of("f.register(Callable(), signature=plum.Signature(int))"),
            "call",
        )
    ]
    assert f(1) == "int"


def test_signatures_with_variadic_arguments(dispatch):
    @dispatch
    def f(x: int, *rest: str):
        return 0

    f.register(lambda *a: 1, signature=plum.Signature(str, varargs=float))
    assert [r.signature for r in plum_freeze.registrations(f)] == [
        "(x: int, *rest: str)",
        "(str, *float)",
    ]


# -- decorators that are older than the patches --------------------------------------------------


def test_what_no_patch_saw_is_on_record_once_it_is_found(dispatch, recwarn):
    @dispatch
    def f(x: object):
        return "object"

    plum_freeze.freeze(f)
    assert f(1) == "object"

    def method(x: int):
        return "int"

    f._pending.append((method, None, 0))  # as a decorator does that plum made before the patches
    with pytest.warns(plum_freeze.LateRegistrationWarning, match=r"f\(x: int\)") as caught:
        assert f(1) == "int"
    line = line_of("def method(x: int):")
    assert [(w.filename, w.lineno) for w in caught] == [(HERE, line)]
    assert facts(plum_freeze.registrations(f))[1:] == [(__name__, Path(HERE).name, line, "late")]


def test_what_no_patch_saw_is_found_inside_an_import_as_well(name, tmp_path):
    sample = importlib.import_module(name)
    plum_freeze.freeze(sample)

    def method(x: int):
        return "int"

    sample.f._pending.append((method, None, 0))
    (tmp_path / name / "calling.py").write_text("from . import f\nvalue = f(1)\n")
    with pytest.warns(plum_freeze.LateRegistrationWarning, match=r"f\(x: int\)") as caught:
        assert importlib.import_module(f"{name}.calling").value == "int"
    assert [w.filename for w in caught] == [HERE]


@pytest.mark.parametrize(
    ("file", "is_cell"),
    [
        ("<ipython-input-3-5b792684bd2a>", True),
        ("<python-input-0>", True),
        ("/tmp/ipykernel_4711/1234567890.py", True),
        ("C:\\Temp\\ipykernel_4711\\12.py", True),
        ("<doctest sample[0]>", False),
        ("<stdin>", False),
        ("/home/ipykernel_4711/methods.py", False),
        ("/home/python-input-3.py", False),
    ],
)
def test_a_cell_that_runs_again_is_the_same_source(file, is_cell):
    assert _origin.source_of(file) == ("<cell>" if is_cell else file)


# -- what is asked for ---------------------------------------------------------------------------


def test_what_a_package_registers_on_others_functions(name, tmp_path):
    other = f"other_{name}"
    (tmp_path / f"{other}.py").write_text(
        f"from {name} import dispatch\n@dispatch\ndef f(x: int): return 'other'\n"
    )
    sample = importlib.import_module(name)
    module = importlib.import_module(other)
    expected = [(other, f"{other}.py", 2, "import")]
    assert facts(plum_freeze.registrations(other)) == expected
    assert facts(plum_freeze.registrations(module)) == expected
    assert facts(plum_freeze.registrations(sample.f))[-1:] == expected
    assert facts(plum_freeze.registrations(name))[-1:] == expected
    everything = plum_freeze.registrations("*")
    assert expected[0] in facts(everything)
    assert not [r for r in everything if r.module.startswith("plum.")]
    importlib.import_module(f"{name}.kinds")
    on_plums = [
        r for r in plum_freeze.registrations("*") if r.module == f"{name}.kinds" and r.line > 30
    ]
    assert [r.line for r in on_plums] == [31, 36, 36, 40]


def test_a_retry_after_a_failed_import_doubles_none(name, tmp_path):
    (tmp_path / name / "broken").touch()
    (tmp_path / name / "failing.py").write_text("from . import late\nfrom . import half\n")
    importlib.import_module(name)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(f"{name}.failing")
    half = [(f"{name}.half", "half.py", 6, "import")]
    late = [(f"{name}.late", "late.py", line, "import") for line in (4, 9, 14)]
    assert facts(plum_freeze.registrations(name))[2:] == late + half
    (tmp_path / name / "broken").unlink()
    importlib.import_module(f"{name}.failing")
    half.append((f"{name}.half", "half.py", 15, "import"))
    assert facts(plum_freeze.registrations(name))[2:] == late + half
    assert _hook.seen(f"{name}.half")


def test_no_method_is_kept_alive_by_the_record(dispatch):
    @dispatch
    def f(x: object):
        return x

    class Local:
        pass

    def method(x: Local):
        return x

    f.dispatch(method)
    assert len(plum_freeze.registrations(f)) == 2
    gone = weakref.ref(method), weakref.ref(Local)
    _plum.forget_entries(f, _plum.entries(f)[1:])
    del method, Local
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    assert [r.signature for r in plum_freeze.registrations(f)] == ["(x: object)"]


def test_each_late_registration_is_compared_once(monkeypatch):
    """Also while nothing is called in between: a submodule may bring hundreds."""
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    plum_freeze.freeze(f, on_late="accept")
    f(1)
    resolved = []
    real = _plum.methods_of
    monkeypatch.setattr(_plum, "methods_of", lambda *args: (resolved.append(args), real(*args))[1])
    for _ in range(20):

        def method(x):
            return x

        method.__annotations__["x"] = type("New", (), {})
        method.__qualname__ = method.__name__ = "f"
        f.dispatch(method)
    assert len(resolved) == 40, "once before it lands, and once after"


def test_a_function_that_is_taken_out_of_plum_does_not_crash_the_process():
    """The compiled plum frees a function without clearing weak references to it."""
    source = """
        import gc, plum, plum_freeze
        plum_freeze.install("nobody")
        for _ in range(20):
            dispatch = plum.Dispatcher()
            @dispatch
            def f(x: int): return x
            f(1)
            plum.Function._instances.remove(f)
            del f, dispatch
            gc.collect()
        print(len(plum_freeze.registrations("*")), len(plum_freeze.registrations()))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(Path(_hook.__file__).parents[1])},
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "20 20\n"), run.stderr
