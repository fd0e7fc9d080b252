"""The import hook on its own: what it tells its listener, and what it leaves as it was.

Sample packages are copied to a temporary folder and imported under a name that is used once.
"""

import ast
import builtins
import collections.abc
import contextlib
import copy
import importlib
import importlib.machinery
import importlib.resources
import importlib.util
import inspect
import pickle
import shutil
import subprocess
import sys
import sysconfig
import threading
import traceback
import warnings
import zipfile
from pathlib import Path

import pytest

from plum_freeze import _hook

PACKAGES = Path(__file__).parent / "packages"
OURS = str(Path(_hook.__file__))


class Events:
    """A listener that writes down what it is told. `hooks` run at the end of a module."""

    def __init__(self):
        self.log = []
        self.modules = {}
        self.hooks = {}

    def started(self, name):
        self.log.append(("start", name))

    def ended(self, name, module, error):
        self.log.append(("end", name) if error is None else ("fail", name, type(error).__name__))
        self.modules[name] = module
        self.hooks.get(name, lambda: None)()

    def short(self, root):
        """The log, with the unique name of the sample package left out."""
        return [(what, name.removeprefix(root), *rest) for what, name, *rest in self.log]


@pytest.fixture
def events():
    listener = Events()
    before = _hook._the_finder and _hook._the_finder.listener
    finder = _hook.finder(listener)
    tracked = finder._prefixes, finder._everything
    finder._prefixes, finder._everything = (), False
    yield listener
    finder._prefixes, finder._everything = tracked
    finder.listener = before or listener


@pytest.fixture
def finder(events):
    return _hook.finder(events)


@pytest.fixture
def sample(tmp_path, monkeypatch, finder):
    """Copies a sample package under a unique name, and tracks it."""
    monkeypatch.syspath_prepend(tmp_path)
    loaded = set(sys.modules)
    count = iter(range(100))

    def make(kind, *, track=True, name=None):
        name = name or f"{kind}_{tmp_path.name.replace('-', '_')}_{next(count)}"
        shutil.copytree(PACKAGES / kind, tmp_path / name)
        importlib.invalidate_caches()
        if track:
            finder.track(name)
        return name

    yield make
    for name in set(sys.modules) - loaded:
        del sys.modules[name]


@contextlib.contextmanager
def first_on_meta_path(other):
    sys.meta_path.insert(0, other)
    try:
        yield
    finally:
        sys.meta_path.remove(other)


# --- one end per start ------------------------------------------------------------------------


def test_each_module_starts_and_ends_once_and_in_order(sample, events):
    name = sample("plain")
    module = importlib.import_module(name)
    assert events.short(name) == [
        ("start", ""),
        ("start", ".core"),
        ("end", ".core"),
        ("start", ".fields"),
        ("end", ".fields"),
        ("end", ""),
    ]
    assert events.modules[name] is module
    assert module.core.EXECUTING == (name, f"{name}.core")
    assert _hook.executing() == ()
    assert _hook.seen(f"{name}.core")
    assert not _hook.seen(f"{name}.nothing")
    importlib.import_module(name)
    assert len(events.log) == 6


@pytest.mark.parametrize("error", ["ZeroDivisionError", "SystemExit", "KeyboardInterrupt"])
def test_a_failing_package_ends_and_a_retry_doubles_nothing(sample, events, tmp_path, error):
    name = sample("failing")
    (tmp_path / name / "broken").write_text(f"{error}('no')")
    with pytest.raises(getattr(builtins, error), match="no"):
        importlib.import_module(name)
    failed = [
        ("start", ""),
        ("start", ".good"),
        ("end", ".good"),
        ("start", ".weak"),
        ("fail", ".weak", error),
        ("fail", "", error),
    ]
    assert events.short(name) == failed
    assert events.modules[name] is None
    assert name not in sys.modules
    assert _hook.executing() == ()

    (tmp_path / name / "broken").unlink()
    importlib.import_module(name)
    assert events.short(name)[len(failed) :] == [
        ("start", ""),
        ("start", ".weak"),
        ("end", ".weak"),
        ("end", ""),
    ]


def test_a_listener_that_raises_at_the_end_makes_the_import_fail(sample, events):
    name = sample("plain")

    def refuse():
        raise PermissionError("late")

    events.hooks[f"{name}.core"] = refuse
    with pytest.raises(PermissionError, match="late"):
        importlib.import_module(name)
    assert events.short(name) == [
        ("start", ""),
        ("start", ".core"),
        ("end", ".core"),
        ("fail", "", "PermissionError"),
    ]
    assert f"{name}.core" not in sys.modules
    assert _hook.executing() == ()


def test_a_listener_that_refuses_the_start_is_told_of_no_end(sample, events, monkeypatch):
    name = sample("plain")
    monkeypatch.setattr(events, "started", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(name)
    assert events.log == []
    assert _hook.executing() == ()


def test_the_stack_of_executing_modules_is_per_thread(sample, events):
    # It also deadlocks with `importlib.util.find_spec`, which waits for the parent to be imported.
    name = sample("threads")
    module = importlib.import_module(name)
    assert module.finished
    assert module.seen_by_thread[:2] == [(), (f"{name}.inside",)]
    assert events.short(name) == [
        ("start", ""),
        ("start", ".inside"),
        ("end", ".inside"),
        ("end", ""),
    ]


def test_circular_imports(sample, events):
    name = sample("circular")
    assert importlib.import_module(name).first.value == 2
    assert [event for event in events.short(name) if event[0] == "end"] == [
        ("end", ".second"),
        ("end", ".first"),
        ("end", ""),
    ]


def test_two_threads_that_import_the_same_package_see_it_start_once(sample, events):
    name = sample("plain")
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        importlib.import_module(f"{name}.fields")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(events.short(name)) == sorted(
        (what, module) for what in ("start", "end") for module in ("", ".core", ".fields")
    )


# --- which modules ----------------------------------------------------------------------------


def test_tracks_a_package_and_its_submodules_but_no_other_name(finder):
    finder.track("fields")
    assert finder.tracks("fields")
    assert finder.tracks("fields.a.b")
    assert not finder.tracks("fieldset")
    assert not finder.tracks("field")
    finder.track("ns.part")
    assert finder.tracks("ns.part.x")
    assert not finder.tracks("ns")
    finder.track("fields")
    finder.forget("fields")
    assert not finder.tracks("fields")
    finder.forget("fields")
    assert finder.tracks("ns.part")


def test_track_all_leaves_out_the_standard_library_and_ourselves(finder):
    finder.track("unittest")
    finder.track_all()
    assert finder.tracks("anything.at.all")
    assert finder.tracks("unittest.mock")
    assert not finder.tracks("collections.abc")
    assert not finder.tracks("plum_freeze._report")
    finder.forget_all()
    assert not finder.tracks("anything.at.all")
    assert finder.tracks("unittest")


@pytest.mark.parametrize("name", ["", ".relative", "trailing."])
def test_a_name_that_no_module_has_is_refused(finder, name):
    with pytest.raises(ValueError, match="absolute name"):
        finder.track(name)


def test_two_packages_whose_names_overlap_are_both_told(sample, events, tmp_path):
    first = sample("plain")
    second = sample("plain", name=first + "s")
    importlib.import_module(second)
    assert [name for _, name in events.log[:2]] == [second, f"{second}.core"]
    importlib.import_module(first)
    assert len(events.log) == 12
    assert len(set(events.log)) == 12


def test_overlapping_tracks_tell_once(sample, events, finder):
    name = sample("plain")
    finder.track(f"{name}.core")
    finder.track_all()
    importlib.import_module(name)
    assert len(events.log) == 6


def test_a_foreign_name_asks_nobody(finder, monkeypatch):
    finder.track("mine")

    class Nobody:
        def find_spec(self, *args):
            raise AssertionError("asked")

    monkeypatch.setattr(sys, "meta_path", [finder, Nobody()])
    assert finder.find_spec("mines") is None
    with pytest.raises(AssertionError, match="asked"):
        finder.find_spec("mine")


def test_what_is_forgotten_while_it_is_imported_still_ends(sample, events, finder):
    name = sample("plain")
    events.hooks[f"{name}.core"] = lambda: finder.forget(name)
    importlib.import_module(name)
    assert events.short(name) == [("start", ""), ("start", ".core"), ("end", ".core"), ("end", "")]


# --- how the others are asked -----------------------------------------------------------------


def test_path_and_target_are_passed_on(sample, finder):
    name = sample("plain")
    asked = []

    class Other:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            asked.append((fullname, path, target))

    module = importlib.import_module(name)
    sys.meta_path.append(Other)  # found nothing: asked last, and only for what is not there
    try:
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}.nothing'"):
            importlib.import_module(f"{name}.nothing")
    finally:
        sys.meta_path.remove(Other)
    assert asked[0] == (f"{name}.nothing", module.__path__, None)

    asked.clear()
    with first_on_meta_path(Other):
        finder.find_spec(f"{name}.core", module.__path__, module.core)
    assert asked == [(f"{name}.core", module.__path__, module.core)]


def test_a_finder_that_asks_all_finders_in_turn(sample, events):
    name = sample("plain")
    busy = []

    class Asks:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname in busy or not fullname.startswith(name):
                return None
            busy.append(fullname)
            try:
                return importlib.util.find_spec(fullname)
            finally:
                busy.remove(fullname)

    with first_on_meta_path(Asks):
        importlib.import_module(name)
    assert len(events.log) == 6
    events.log.clear()
    sys.meta_path.insert(1 + sys.meta_path.index(_hook._the_finder), Asks)
    try:
        importlib.reload(sys.modules[f"{name}.core"])
    finally:
        sys.meta_path.remove(Asks)
    assert events.short(name) == [("start", ".core"), ("end", ".core")]


def test_a_finder_that_delegates_as_we_do_and_has_no_guard(sample, events):
    name = sample("plain")

    class Delegates:
        @classmethod
        def find_spec(cls, *args):
            found = (other.find_spec(*args) for other in sys.meta_path if other is not cls)
            return next((spec for spec in found if spec), None)

    finder = _hook._the_finder
    for index in (sys.meta_path.index(finder), sys.meta_path.index(finder) + 1):
        sys.meta_path.insert(index, Delegates)
        try:
            importlib.import_module(name)
        finally:
            sys.meta_path.remove(Delegates)
        assert len(events.log) == len(set(events.log)) == 6
        events.log.clear()
        for module in ("", ".core", ".fields"):
            del sys.modules[name + module]


def test_finders_of_the_old_kind(sample, events, monkeypatch):
    """Up to Python 3.11 importlib asks `find_module` too, and then it must be importlib's turn."""
    name = sample("plain")

    class Old:
        asked = []

        def find_module(self, fullname, path=None):
            self.asked.append(fullname)

    monkeypatch.setattr(sys, "meta_path", [_hook._the_finder, Old(), *sys.meta_path[:]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)
        importlib.import_module(name)
    is_asked = sys.version_info < (3, 12)
    assert bool(Old.asked) == is_asked
    assert len(events.log) == (0 if is_asked else 6)


def test_an_error_in_another_finder_leaves_nothing_behind(sample, events):
    name = sample("plain")

    class Fails:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname == name:
                raise RuntimeError("broken finder")

    finder = _hook._the_finder
    sys.meta_path.insert(1 + sys.meta_path.index(finder), Fails)
    try:
        with pytest.raises(RuntimeError, match="broken finder"):
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(Fails)
    importlib.import_module(name)
    assert len(events.log) == 6


def test_there_is_one_finder_and_it_is_put_back(events):
    finder = _hook.finder(events)
    path = sys.meta_path
    assert _hook.finder(events) is finder
    assert sum(other is finder for other in path) == 1
    path.remove(finder)
    assert _hook.finder(events) is finder
    assert sys.meta_path is path
    assert path[0] is finder
    with first_on_meta_path(object()):
        _hook.finder(events)
        assert path[1] is finder
        assert sum(other is finder for other in path) == 1


def test_the_newest_listener_is_told(sample, events):
    name = sample("plain")
    newer = Events()
    _hook.finder(newer)
    importlib.import_module(name)
    assert len(newer.log) == 6
    assert events.log == []


def test_find_spec_takes_no_lock(sample, finder):
    name = sample("plain")
    done = threading.Event()
    with finder._lock, _hook._the_finder_lock:
        thread = threading.Thread(
            target=lambda: (importlib.import_module(name), done.set()), daemon=True
        )
        thread.start()
        assert done.wait(20)


def test_no_lock_of_ours_is_held_while_a_module_ends(sample, events, finder):
    first, second = sample("plain"), sample("circular")
    results = []

    def work():
        finder.track("something.else")
        _hook.finder(events)
        results.append(importlib.import_module(second))

    def wait_for_thread():
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(20)

    events.hooks[first] = wait_for_thread
    importlib.import_module(first)
    assert results == [sys.modules[second]]


def test_nothing_is_imported_on_the_way():
    tree = ast.parse(Path(OURS).read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            assert not [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
    code = "import sys, plum_freeze._hook; print(sorted({'plum', 'jax', 'numpy', 'rich'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# --- what is left alone -----------------------------------------------------------------------


def test_namespace_packages(sample, events, tmp_path):
    name = sample("spaces")
    inside = importlib.import_module(f"{name}.inside")
    assert events.short(name) == [("start", ".inside"), ("end", ".inside")]
    assert inside.__doc__ == "A module in a namespace package."
    package = sys.modules[name]
    assert type(package.__spec__.loader) is type(package.__loader__)
    assert type(package.__loader__).__name__ in {"NamespaceLoader", "_NamespaceLoader"}
    again = importlib.reload(package)
    assert list(again.__path__) == [str(tmp_path / name)]


def test_loaders_without_exec_module(events, finder):
    finder.track("oldfashioned")

    class OldLoader:
        def load_module(self, fullname):
            module = sys.modules[fullname] = type(sys)(fullname)
            return module

    loader = OldLoader()

    class Finds:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname == "oldfashioned":
                return importlib.machinery.ModuleSpec(fullname, loader)

    try:
        with first_on_meta_path(Finds), warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)
            assert finder.find_spec("oldfashioned").loader is loader
            sys.meta_path.remove(Finds)
            sys.meta_path.insert(1 + sys.meta_path.index(finder), Finds)
            module = importlib.import_module("oldfashioned")
    finally:
        sys.modules.pop("oldfashioned", None)
    assert module.__loader__ is loader
    assert events.log == []


def test_frozen_modules_and_their_loader_which_is_a_class(events, finder):
    finder.track("__phello__")
    before = dict(vars(importlib.machinery.FrozenImporter))
    try:
        spam = importlib.import_module("__phello__.spam")
        package = sys.modules["__phello__"]
    finally:
        for name in [name for name in sys.modules if name.startswith("__phello__")]:
            del sys.modules[name]
    assert [name for what, name in events.log if what == "end"] == ["__phello__", "__phello__.spam"]
    for module in (package, spam):
        assert module.__loader__ is module.__spec__.loader is importlib.machinery.FrozenImporter
    assert dict(vars(importlib.machinery.FrozenImporter)) == before


def test_a_loader_that_is_shared_is_not_changed(events, finder):
    names = ["shared_one", "shared_two"]
    finder.track("shared_one")

    class Shared:
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.ran = self

    shared = Shared()
    specs = {name: importlib.machinery.ModuleSpec(name, shared) for name in names}

    class Finds:
        """Hands out the same spec each time, too."""

        @staticmethod
        def find_spec(fullname, path=None, target=None):
            return specs.get(fullname)

    sys.meta_path.insert(1 + sys.meta_path.index(finder), Finds)
    try:
        finder.find_spec("shared_one")
        finder.find_spec("shared_one")  # our proxy is in the finder's spec by now
        one, two = map(importlib.import_module, names)
    finally:
        sys.meta_path.remove(Finds)
        for name in names:
            sys.modules.pop(name, None)
    assert events.log == [("start", "shared_one"), ("end", "shared_one")]
    assert vars(shared) == {}
    assert one.ran is two.ran is one.__loader__ is two.__loader__ is shared
    assert specs["shared_one"].loader is shared


# --- a loader like the original ---------------------------------------------------------------


def test_the_body_finds_the_original_loader(sample):
    name = sample("plain")
    core = importlib.import_module(f"{name}.core")
    assert type(core.LOADER) is type(core.SPEC_LOADER)
    assert type(core.LOADER).__module__.startswith("_frozen_importlib")
    assert core.__loader__ is core.__spec__.loader is core.LOADER
    assert "plum_freeze" not in repr(core.__spec__)


def test_the_proxy_forwards_everything_else(sample, tmp_path):
    name = sample("plain")
    spec = importlib.util.find_spec(name)
    plain = importlib.machinery.PathFinder.find_spec(name)
    assert type(spec.loader) is _hook._Loader
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    assert isinstance(spec.loader, importlib.abc.InspectLoader)
    assert spec.loader == plain.loader
    assert hash(spec.loader) == hash(plain.loader)
    assert spec.loader.get_source(name) == plain.loader.get_source(name)
    assert spec.loader.get_code(name) == plain.loader.get_code(name)
    assert spec.loader.get_filename(name) == spec.origin == plain.origin
    assert spec.loader.is_package(name)
    data = tmp_path / name / "data.txt"
    assert spec.loader.get_data(str(data)) == b"some data\n"
    assert (spec.loader.get_resource_reader(name).files() / "data.txt").read_text() == "some data\n"
    assert importlib.resources.files(name).joinpath("data.txt").read_text() == "some data\n"
    assert repr(spec.loader) != ""
    assert not isinstance(spec.loader, collections.abc.Iterable)


@pytest.mark.parametrize("name", ["sample", "__phello__"])
def test_the_proxy_is_copied_and_pickled_as_the_original(sample, finder, name):
    if name == "sample":
        name = sample("plain")
    finder.track(name)
    loader = finder.find_spec(name).loader
    original = loader.__wrapped__
    pickled = pickle.dumps(loader)
    assert b"plum_freeze" not in pickled
    for twin in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickled)):
        assert type(twin) is type(original)
        assert twin == original
    deep = copy.deepcopy(finder.find_spec(name))
    assert type(deep.loader) is type(original)


def test_a_spec_that_is_used_by_hand(sample, events):
    name = sample("plain")
    spec = importlib.util.find_spec(f"{name}.core")
    events.log.clear()
    module = importlib.util.module_from_spec(spec)
    assert type(module.__loader__) is _hook._Loader
    spec.loader.exec_module(module)
    assert events.short(name) == [("start", ".core"), ("end", ".core")]
    assert module.__loader__ is spec.loader is module.LOADER
    assert type(spec.loader) is importlib.machinery.SourceFileLoader


def test_reload(sample, events):
    name = sample("plain")
    core = importlib.import_module(f"{name}.core")
    events.log.clear()
    core.add = None
    assert importlib.reload(core) is core
    assert core.add is not None
    assert events.short(name) == [("start", ".core"), ("end", ".core")]
    assert type(core.__loader__) is importlib.machinery.SourceFileLoader


def test_zip_imports(sample, events, tmp_path, monkeypatch):
    name = sample("plain")
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (tmp_path / name).rglob("*.*"):
            file.write(path, path.relative_to(tmp_path))
    shutil.rmtree(tmp_path / name)
    monkeypatch.syspath_prepend(archive)
    module = importlib.import_module(name)
    assert len(events.log) == 6
    assert type(module.__loader__).__name__ == "zipimporter"
    assert importlib.resources.files(name).joinpath("data.txt").read_text() == "some data\n"
    assert module.core.add.file == str(archive / name / "core.py")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The three extension modules, in a package."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    include = Path(sysconfig.get_paths()["include"])
    if compiler is None or not (include / "Python.h").exists():
        pytest.skip("no C compiler or no Python.h: extension modules cannot be built")
    folder = tmp_path_factory.mktemp("extensions") / "extensions_built"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for source in (PACKAGES / "extensions").glob("*.c"):
        target = folder / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
        command = [compiler, "-shared", "-fPIC", "-O0", f"-I{include}", source, "-o", target]
        subprocess.run(command, check=True)
    return folder


@pytest.mark.parametrize("kind", ["single", "multi", "odd"])
def test_extension_modules(compiled, sample, events, finder, monkeypatch, kind):
    monkeypatch.syspath_prepend(compiled.parent)
    finder.track("extensions_built")
    name = f"extensions_built.{kind}"
    module = importlib.import_module(name)
    assert events.log[2:] in ([("start", name), ("end", name)], [])  # the package came by once
    assert ("end", name) in events.log
    assert events.modules[name] is module
    if kind == "odd":
        assert module == 3.0 + 0j
    else:
        assert module.value == {"single": 1, "multi": 2}[kind]
        assert type(module.__loader__) is importlib.machinery.ExtensionFileLoader
        assert module.__loader__ is module.__spec__.loader


def test_a_lazy_loader_made_by_hand(sample, events):
    name = sample("plain")
    sys.modules.pop(name, None)
    spec = importlib.util.find_spec(name)
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    assert events.log == []
    assert module.core.EXECUTING == (name, f"{name}.core")
    assert len(events.log) == 6
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    assert module.__spec__.loader is module.__loader__


def test_a_finder_that_makes_everything_lazy(sample, events):
    name = sample("plain")
    made = []

    class Lazily:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            spec = fullname.startswith(name) and importlib.machinery.PathFinder.find_spec(
                fullname, path
            )
            if spec:
                spec.loader = importlib.util.LazyLoader(spec.loader)
                made.append(spec.loader)
                return spec

    sys.meta_path.insert(1 + sys.meta_path.index(_hook._the_finder), Lazily)
    try:
        module = importlib.import_module(name)
        assert events.log == []  # the body has not run, and so it has not ended
        assert object.__getattribute__(module, "__class__") is not type(sys)
        assert module.core.EXECUTING == (f"{name}.core",)
    finally:
        sys.meta_path.remove(Lazily)
    assert events.short(name)[0] == ("start", "")
    assert {name for _, name in events.short(name)} >= {"", ".core"}
    assert len(events.log) == len(set(events.log))
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    assert {type(loader.loader) for loader in made} == {importlib.machinery.SourceFileLoader}


# --- modules that are not what they seem ------------------------------------------------------


def test_pep_562_is_not_asked_by_us(sample, events):
    name = sample("lazily")
    module = importlib.import_module(name)
    assert set(module.asked) <= {"__path__"}  # importlib's own question, if any
    module.asked.clear()
    events.log.clear()
    assert module.late.method.module == f"{name}.late"
    assert events.short(name) == [("start", ".late"), ("end", ".late")]
    assert "__dict__" not in module.asked


def test_a_module_class_with_its_own_getattribute(events, finder):
    finder.track("touchy")
    asked = []

    class Touchy(type(sys)):
        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

    class Loads:
        def create_module(self, spec):
            return Touchy(spec.name)

        def exec_module(self, module):
            asked.append("BODY")

    class Finds:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname == "touchy":
                return importlib.machinery.ModuleSpec(fullname, Loads())

    def questions():
        asked.clear()
        sys.modules.pop("touchy", None)
        importlib.import_module("touchy")
        del sys.modules["touchy"]
        return list(asked)

    sys.meta_path.insert(1 + sys.meta_path.index(finder), Finds)
    try:
        tracked = questions()
        finder.forget("touchy")
        plain = questions()
    finally:
        sys.meta_path.remove(Finds)
    assert tracked == plain
    assert events.log == [("start", "touchy"), ("end", "touchy")]


def test_a_module_that_replaces_itself(sample, events):
    name = sample("shifty")
    module = importlib.import_module(f"{name}.replaces")
    assert module.value == 42
    assert events.short(name)[2:] == [("start", ".replaces"), ("end", ".replaces")]
    executed = events.modules[f"{name}.replaces"]
    assert executed.instance is module


def test_a_module_that_deletes_itself_fails_as_it_does_without_us(sample, events, finder):
    name = sample("shifty")
    errors = []
    for track in (finder.track, finder.forget):
        track(name)
        with pytest.raises(KeyError) as caught:
            importlib.import_module(f"{name}.deletes")
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]
    assert events.short(name)[2:] == [("start", ".deletes"), ("end", ".deletes")]


def test_scientific_pythons_lazy_loader(sample, events):
    pytest.importorskip("lazy_loader")
    name = sample("scientific")
    module = importlib.import_module(name)
    assert events.short(name) == [("start", ""), ("end", "")]
    assert module.late.method.module == f"{name}.late"
    assert module.thing == "thing"
    assert events.short(name)[2:] == [
        ("start", ".late"),
        ("end", ".late"),
        ("start", ".other"),
        ("end", ".other"),
    ]


# --- what a user sees -------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["ZeroDivisionError", "ImportError", "SystemExit"])
def test_a_failing_import_shows_the_frames_that_it_shows_without_us(
    sample, tmp_path, finder, error
):
    name = sample("failing")
    (tmp_path / name / "broken").write_text(f"{error}('no')")

    def frames():
        try:
            __import__(name)  # not `import_module`, whose frames Python does not trim
        except BaseException as caught:
            return [(f.filename, f.name) for f in traceback.extract_tb(caught.__traceback__)]
        finally:
            sys.modules.pop(f"{name}.good", None)

    tracked = frames()
    finder.forget(name)
    assert tracked == frames()
    files = [Path(file).name for file, _ in tracked]
    assert files == ["test_hook.py", "__init__.py", "weak.py"]


def test_a_syntax_error_shows_no_frame_of_ours(sample, tmp_path):
    name = sample("plain")
    (tmp_path / name / "core.py").write_text("def")
    with pytest.raises(SyntaxError) as caught:
        __import__(name)
    text = "".join(traceback.format_exception(caught.value))
    assert "plum_freeze" not in text
    assert "importlib" not in text


def test_a_refusal_at_the_end_shows_few_frames(sample, events):
    name = sample("plain")
    events.hooks[name] = lambda: 1 / 0
    try:
        __import__(name)
    except ZeroDivisionError as error:
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-3:] == ["exec_module", "ended", "<lambda>"]
    assert len(names) <= 8


def test_a_deprecated_module_blames_who_imports_it(sample, tmp_path):
    name = sample("blaming")
    with pytest.warns(UserWarning, match="old is old") as caught:
        importlib.import_module(name)
    assert caught[0].filename == str(tmp_path / name / "__init__.py")


def test_our_frames_carry_the_name_of_importlibs_file():
    """The trick behind the four tests above. If it fails, tracebacks are long and nothing else."""
    for function in (_hook._Loader.exec_module, _hook.Finder.find_spec):
        assert inspect.unwrap(function).__code__.co_filename == "<frozen importlib._bootstrap>"
        assert "__tracebackhide__" in function.__code__.co_varnames
