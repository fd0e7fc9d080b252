"""Modules that are imported after the freeze: one warning each, at the right place, right values.

The sample package is copied to a temporary folder under a name that is used once.
"""

import importlib
import re
import shutil
import sys
import threading
import traceback
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import plum_freeze
from plum_freeze import (
    InvalidationWarning,
    LateRegistrationError,
    LateRegistrationWarning,
    _hook,
    _plum,
    _waiting,
)

PACKAGES = Path(__file__).parent / "packages"
OURS = str(Path(_hook.__file__).parent)


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Copies the sample package and imports it; gives the package, and how to freeze it."""
    monkeypatch.syspath_prepend(tmp_path)
    name = f"dispatching_{tmp_path.name.replace('-', '_')}"
    shutil.copytree(PACKAGES / "dispatching", tmp_path / name)
    importlib.invalidate_caches()
    yield importlib.import_module(name)
    for each in [each for each in sys.modules if tmp_path.name.replace("-", "_") in each]:
        del sys.modules[each]


@pytest.fixture
def frozen(sample):
    plum_freeze.freeze(sample, on_late="warn")
    return sample


def late_warnings(caught):
    return [w for w in caught if issubclass(w.category, LateRegistrationWarning)]


def importing(*names):
    """Import modules, and give the warnings of each step."""
    steps = []
    for name in names:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            importlib.import_module(name)
        steps.append(late_warnings(caught))
    return steps if len(steps) > 1 else steps[0]


def phases(sample):
    found = plum_freeze.registrations(sample)
    return [(r.module.removeprefix(sample.__name__), r.signature, r.phase) for r in found]


def entries(function):
    return [e.key for e in _plum.entries(function)]


# -- one warning for a module --------------------------------------------------------------------


def test_one_warning_names_all_methods_of_a_module(frozen):
    assert (frozen.f(1), frozen.g("s"), frozen.f(1.0)) == ("object",) * 3
    (warning,) = importing(f"{frozen.__name__}.late")
    late = frozen.late.__file__
    assert (warning.category, warning.filename, warning.lineno) == (InvalidationWarning, late, 4)
    for fact in (
        r"3 methods were registered late",
        rf"f\(x: int\)  at {re.escape(late)}:4",
        rf"g\(x: str\)  at {re.escape(late)}:9",
        rf"f\(x: float\)  at {re.escape(late)}:14",
        rf"{frozen.__name__}\.f \(frozen at {re.escape(__file__)}:\d+\)",
        r"Decisions already taken that change:\n.*f\(int\)",
        rf"import {frozen.__name__}\.late before freeze\(\)",
    ):
        assert re.search(fact, str(warning.message)), fact
    assert (frozen.f(1), frozen.g("s"), frozen.f(1.0)) == ("int", "str", "float")
    assert frozen.f([]) == "object"


def test_a_module_that_changes_no_decision(frozen):
    assert frozen.f(None) == "object"
    (warning,) = importing(f"{frozen.__name__}.late")
    assert warning.category is LateRegistrationWarning
    assert frozen.f(1) == "int"


def test_the_warning_comes_at_the_end_of_the_module_and_not_before(frozen, tmp_path):
    module = tmp_path / frozen.__name__ / "watching.py"
    module.write_text(
        "import warnings\n"
        "from . import dispatch\n"
        "with warnings.catch_warnings(record=True) as inside:\n"
        "    warnings.simplefilter('always')\n"
        "    @dispatch\n"
        "    def f(x: int): return 'int'\n"
        "    value = f(1)\n"
    )
    (warning,) = importing(f"{frozen.__name__}.watching")
    assert (frozen.watching.inside, frozen.watching.value) == ([], "int")
    assert warning.lineno == 5


def test_a_module_that_imports_another_late_module(frozen):
    inner, outer = importing(f"{frozen.__name__}.outer")
    assert (Path(inner.filename).name, Path(outer.filename).name) == ("late.py", "outer.py")
    assert "3 methods" in str(inner.message)
    assert "2 methods" in str(outer.message)
    assert [frozen.f(x) for x in ([], {}, 1)] == ["list", "dict", "int"]
    assert [row for row in phases(frozen) if row[2] == "late"] == [
        (".outer", "(x: list)", "late"),
        (".late", "(x: int)", "late"),
        (".late", "(x: str)", "late"),
        (".late", "(x: float)", "late"),
        (".outer", "(x: dict)", "late"),
    ]


def test_every_way_in_is_named(frozen):
    (warning,) = importing(f"{frozen.__name__}.kinds")
    text = str(warning.message)
    for signature in ("f(int, int)", "f(str, str)", "f(x: complex, y: complex)", "g(bytes)",
                      "g(bytearray)", "g(memoryview)"):  # fmt: skip
        assert f"    {signature}  at " in text, signature
    assert "measure" not in text  # a function that is new is free


def test_threads_that_import_late_modules_at_once(frozen, tmp_path):
    names = [f"part{i}" for i in range(6)]
    types = ["int", "str", "float", "bytes", "list", "dict"]
    for name, cls in zip(names, types, strict=True):
        (tmp_path / frozen.__name__ / f"{name}.py").write_text(
            "from . import dispatch\nimport time\n"
            f"@dispatch\ndef f(x: {cls}): return '{cls}'\n"
            "time.sleep(0.01)\n"
            f"@dispatch\ndef g(x: {cls}): return '{cls}'\n"
        )
    barrier = threading.Barrier(len(names))
    failed = []

    def work(name):
        barrier.wait()
        try:
            importlib.import_module(f"{frozen.__name__}.{name}")
        except BaseException as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    assert failed == []
    found = sorted((Path(w.filename).stem, str(w.message).splitlines()[0][:9]) for w in caught)
    assert found == [(name, "2 methods") for name in names]
    values = [eval(cls)() for cls in types]
    assert [frozen.f(x) for x in values] == [frozen.g(x) for x in values] == types


def test_a_thread_that_the_module_starts_registers_for_itself(frozen, tmp_path):
    (tmp_path / frozen.__name__ / "starting.py").write_text(
        "import threading\nfrom . import dispatch\n"
        "def work():\n    @dispatch\n    def f(x: int): return 'int'\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
    )
    (warning,) = importing(f"{frozen.__name__}.starting")
    assert (Path(warning.filename).name, warning.lineno) == ("starting.py", 4)
    assert phases(frozen)[-1] == (".starting", "(x: int)", "late")
    assert frozen.f(1) == "int"


# -- half way ------------------------------------------------------------------------------------


def test_a_module_that_fails_half_way_and_the_retry(frozen, tmp_path):
    broken = tmp_path / frozen.__name__ / "broken"
    broken.touch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(ZeroDivisionError, match="half way"):
            frozen.sub("half")
    (warning,) = late_warnings(caught)
    assert "1 method was" in str(warning.message)
    # As plain plum: what was registered before the error stays.
    assert (frozen.f(b""), frozen.g(b"")) == ("bytes", "object")
    assert phases(frozen)[-1] == (".half", "(x: bytes)", "late")
    broken.unlink()
    (warning,) = importing(f"{frozen.__name__}.half")
    assert "2 methods were" in str(warning.message)
    assert (frozen.f(b""), frozen.g(b"")) == ("bytes", "bytes")
    assert [row for row in phases(frozen) if row[2] == "late"] == [
        (".half", "(x: bytes)", "late"),
        (".half", "(x: bytes)", "late"),
    ]


# -- policies ------------------------------------------------------------------------------------


def test_accept_says_nothing_and_is_right(sample):
    plum_freeze.freeze(sample, on_late="accept")
    assert sample.f(1) == "object"
    assert importing(f"{sample.__name__}.outer") == []
    assert [sample.f(x) for x in (1, [], {})] == ["int", "list", "dict"]
    assert sum(row[2] == "late" for row in phases(sample)) == 5


def test_raise_refuses_the_import_and_everything_is_as_before(sample):
    plum_freeze.freeze(sample, on_late="raise")
    assert sample.f(1) == "object"
    before = entries(sample.f), entries(sample.g), phases(sample)
    for _ in range(2):  # a retry is refused as well
        with pytest.raises(LateRegistrationError) as caught:
            sample.sub("outer")
        assert caught.value.where == f"{Path(sample.__file__).with_name('outer.py')}:4"
        assert (entries(sample.f), entries(sample.g), phases(sample)) == before
        assert sample.f(1) == sample.f([]) == "object"
        assert f"{sample.__name__}.outer" not in sys.modules
    with plum_freeze.thawed(sample):
        assert importing(f"{sample.__name__}.outer") == []
    assert [sample.f(x) for x in (1, [], {})] == ["int", "list", "dict"]


@pytest.mark.parametrize("module", ["late", "outer", "kinds"])
def test_where_warnings_are_errors_the_import_fails_and_everything_is_as_before(frozen, module):
    values = (1, [], "s")
    assert [frozen.f(x) for x in values] == ["object"] * 3
    before = entries(frozen.f), entries(frozen.g), phases(frozen)
    known = len(plum_freeze._table.table_of(frozen.f).known)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(LateRegistrationWarning, match="late"):
                frozen.sub(module)
        assert f"{frozen.__name__}.{module}" not in sys.modules
        if module != "kinds":  # that has a function of its own, which nobody refuses
            assert phases(frozen) == before[2]
        assert (entries(frozen.f), entries(frozen.g)) == before[:2]
        assert [frozen.f(x) for x in values] == ["object"] * 3
        assert len(plum_freeze._table.table_of(frozen.f).known) == known
    found = importing(f"{frozen.__name__}.{module}")
    assert len(found) == (2 if module == "outer" else 1)
    expected = {
        "late": ["int", "object", "object"],
        "outer": ["int", "list", "object"],
        "kinds": ["object", "object", "object"],
    }
    assert [frozen.f(x) for x in values] == expected[module]
    if module == "kinds":
        assert frozen.f(1, 2) == "two"


def test_a_refused_reload_leaves_the_record_of_what_it_would_have_replaced(sample):
    late = sample.sub("late")
    plum_freeze.freeze(sample)
    before = plum_freeze.registrations(sample.f)
    Path(late.__file__).write_text(Path(late.__file__).read_text().replace('"int"', '"INT"'))
    importlib.invalidate_caches()
    assert sample.f(1) == "int"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidationWarning, match=r"1 method was(.|\n)*f\(x: int\)"):
            _reload_from_source(late)
    assert sample.f(1) == "int"
    now = plum_freeze.registrations(sample.f)
    assert [r.method for r in now if "int" in r.signature] == [
        r.method for r in before if "int" in r.signature
    ]
    # What is registered again as it was is no change, and stays.
    assert sorted((r.signature, r.phase) for r in now) == sorted(
        (r.signature, r.phase) for r in before
    )


def _reload_from_source(module):
    """Reload, whatever the clock says about the compiled file."""
    shutil.rmtree(Path(module.__file__).parent / "__pycache__", ignore_errors=True)
    return importlib.reload(module)


@pytest.mark.parametrize("how", ["raise", "error"])
def test_a_refused_import_has_a_short_traceback(sample, how):
    plum_freeze.freeze(sample, on_late="raise" if how == "raise" else "warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((LateRegistrationError, LateRegistrationWarning)) as caught:
            importlib.import_module(f"{sample.__name__}.late")
    frames = traceback.extract_tb(caught.tb)
    ours = [frame.name for frame in frames if frame.filename.startswith(OURS)]
    assert len(ours) <= 4, ours
    visible = [
        frame for frame in traceback.walk_tb(caught.tb)
        if not frame[0].f_locals.get("__tracebackhide__")
    ]  # fmt: skip
    assert not [frame for frame, _ in visible if frame.f_code.co_filename.startswith(OURS)]
    if how == "raise":
        assert any(
            frame.filename == str(Path(sample.__file__).with_name("late.py")) for frame in frames
        )


# -- first touched where nobody expects it -------------------------------------------------------


@pytest.mark.parametrize("policy", ["warn", "accept", "raise"])
def test_a_submodule_first_touched_inside_a_traced_function(sample, policy):
    plum_freeze.freeze(sample, on_late=policy)
    x = jnp.asarray(3.0)
    importing_now = []

    @jax.jit
    def traced(x):
        before = sample.f(x)
        if importing_now:
            sample.sub("arrays")
        after = sample.f(x)
        return (x if before == "object" else before), (x if after == "object" else after)

    assert traced(x) == (3.0, 3.0)
    importing_now.append(True)
    jax.clear_caches()
    if policy == "raise":
        with pytest.raises(LateRegistrationError):
            traced(x)
        importing_now.clear()
        assert traced(x) == (3.0, 3.0)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = traced(x)
    assert first[1] == 6.0
    found = late_warnings(caught)
    assert len(found) == (policy == "warn")
    for warning in found:
        assert (Path(warning.filename).name, warning.lineno) == ("arrays.py", 6)
    assert phases(sample)[-1][::2] == (".arrays", "late")
    # The trace that was under way is not kept: both are new now.
    assert traced(x) == (6.0, 6.0)


@pytest.mark.parametrize("policy", ["warn", "accept", "raise"])
def test_a_plugin_that_is_loaded_through_an_entry_point(sample, tmp_path, policy):
    name = f"plugin_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        f"import jax\nfrom {sample.__name__} import dispatch\n\n"
        "@dispatch\ndef f(x: jax.Array): return x * 2\n\n"
        "@dispatch\ndef g(x: int): return 'int'\n"
    )
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{name}.plugins]\nfast = {name}:f\n")
    (entry,) = importlib.metadata.entry_points(group=f"{name}.plugins")
    plum_freeze.freeze(sample, on_late=policy)
    x = jnp.asarray(3.0)

    @jax.jit
    def outer(x):
        y = sample.f(x)
        return x if y == "object" else y

    assert outer(x) == 3.0
    assert sample.g(1) == "object"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if policy == "raise":
            with pytest.raises(LateRegistrationError, match=f"{name}.py:4"):
                entry.load()
        else:
            assert entry.load() is sample.f
    found = late_warnings(caught)
    assert [(w.filename, w.lineno) for w in found] == (
        [(str(tmp_path / f"{name}.py"), 4)] if policy == "warn" else []
    )
    late = [(r.module, r.line) for r in plum_freeze.registrations(sample) if r.phase == "late"]
    expected = (3.0, "object", []) if policy == "raise" else (6.0, "int", [(name, 4), (name, 7)])
    assert (outer(x), sample.g(1), late) == expected


# -- modules whose end comes unseen --------------------------------------------------------------


class Bypassing:
    """A finder before ours that answers for one module: our hook never sees it."""

    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)


@pytest.fixture
def bypassed(frozen, monkeypatch):
    """`late` does not pass our hook."""
    name = f"{frozen.__name__}.late"
    monkeypatch.setattr(sys, "meta_path", [Bypassing(name), *sys.meta_path])
    return frozen


def caught_by(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return late_warnings(caught)


def unrelated_registration(sample):
    import plum

    @plum.Dispatcher()
    def unrelated(x: int):
        return x


EVENTS = {
    "registration": unrelated_registration,
    "registrations": lambda sample: plum_freeze.registrations("plum"),
    "report": lambda sample: plum_freeze.report(sample),
    "freeze": lambda sample: plum_freeze.freeze(sample),
    "install": lambda sample: plum_freeze.install("plum"),
    "import": lambda sample: sample.sub("same"),
    "exit": lambda sample: _waiting.settle(),
}


@pytest.mark.parametrize("event", EVENTS)
def test_a_bypassed_module_warns_once_at_the_next_event(bypassed, event):
    assert bypassed.f(1) == "object"
    assert caught_by(lambda: bypassed.sub("late")) == []
    assert not _hook.seen(f"{bypassed.__name__}.late")
    assert (bypassed.f(1), bypassed.f(1.0), bypassed.g("s")) == ("int", "float", "str")
    warning, *others = caught_by(lambda: EVENTS[event](bypassed))
    assert "3 methods were" in str(warning.message)
    assert (warning.filename, warning.lineno) == (bypassed.late.__file__, 4)
    assert len(others) == (event == "import")
    assert caught_by(lambda: unrelated_registration(bypassed)) == []
    assert [row[::2] for row in phases(bypassed) if row[0] == ".late"] == [(".late", "late")] * 3


def test_a_bypassed_module_is_refused_at_once_where_warnings_are_errors(bypassed):
    before = entries(bypassed.f), phases(bypassed)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", LateRegistrationWarning)
            with pytest.raises(LateRegistrationWarning, match="1 method was"):
                bypassed.sub("late")
        assert (entries(bypassed.f), phases(bypassed), bypassed.f(1)) == (*before, "object")
    assert caught_by(lambda: bypassed.sub("late")) == []
    assert len(caught_by(_waiting.settle)) == 1
    assert bypassed.f(1) == "int"


def test_a_bypassed_module_in_a_seen_one(bypassed):
    found = caught_by(lambda: bypassed.sub("outer"))
    assert sorted(Path(w.filename).name for w in found) == ["late.py", "outer.py"]


def test_filters_by_module_and_message_decide_whether_it_is_an_error(bypassed):
    name = f"{bypassed.__name__}.late"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=re.escape(name))
        bypassed.sub("late")
        _waiting.settle()
    assert bypassed.f(1) == "int"


def test_the_warning_is_not_lost_at_the_end_of_the_process(tmp_path):
    import subprocess

    shutil.copytree(PACKAGES / "dispatching", tmp_path / "sample")
    source = (
        "import sys, importlib.machinery, plum_freeze, sample\n"
        "class First:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return importlib.machinery.PathFinder.find_spec(name, path, target)\n"
        "plum_freeze.freeze(sample)\n"
        "sys.meta_path.insert(0, First())\n"
        "import sample.late\n"
        "print(sample.f(1))\n"
    )
    root = str(Path(OURS).parent)
    run = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True,
        timeout=120, env={"PYTHONPATH": root},
    )  # fmt: skip
    assert run.stdout == "int\n"
    assert run.stderr.count("registered late") == 1
    assert "late.py:4: LateRegistrationWarning: 3 methods were" in run.stderr


def test_a_lazy_module(frozen):
    """Its body runs at the first attribute: late, from then on."""
    name = f"{frozen.__name__}.late"
    spec = importlib.machinery.PathFinder.find_spec(name, frozen.__path__)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    assert frozen.f(1) == "object"
    found = caught_by(lambda: module.f_of_floats)
    found += caught_by(_waiting.settle)
    assert sum("f(x: int)" in str(w.message) for w in found) == 1
    assert sum(str(w.message).count("  at ") for w in found) == 3
    assert [frozen.f(1), frozen.g("s")] == ["int", "str"]
    assert [row[0] for row in phases(frozen) if row[2] == "late"] == [".late"] * 3
