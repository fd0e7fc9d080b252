"""install: what it adopts, what it says, and what uninstall leaves."""

import contextlib
import importlib
import re
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

import plum_freeze
from plum_freeze import _hook, _late, _report

PACKAGES = Path(__file__).parent / "packages"
ROOT = str(Path(_hook.__file__).parents[1])


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Copies the sample package under a unique name; gives the name."""
    monkeypatch.syspath_prepend(tmp_path)
    stem = tmp_path.name.replace("-", "_")
    count = iter(range(100))

    def make(init=""):
        name = f"dispatching_{stem}_{next(count)}"
        shutil.copytree(PACKAGES / "dispatching", tmp_path / name)
        if init:
            file = tmp_path / name / "__init__.py"
            file.write_text(file.read_text() + textwrap.dedent(init))
        importlib.invalidate_caches()
        return name

    yield make
    for each in [each for each in sys.modules if stem in each]:
        del sys.modules[each]


@pytest.fixture
def finder():
    """The finder as in a process where nothing is installed or frozen."""
    finder = _hook.finder(_late.LISTENER)
    before = finder._prefixes, finder._everything
    finder._prefixes, finder._everything = (), 0
    yield finder
    finder._prefixes, finder._everything = before


@contextlib.contextmanager
def untracked():
    """What is imported inside is not seen by the hook."""
    path = [each for each in sys.meta_path if not isinstance(each, _hook.Finder)]
    before, sys.meta_path = sys.meta_path, path
    try:
        yield
    finally:
        sys.meta_path = before


def run(source, cwd, *options, **env):
    """A program in a process of its own: what it prints, and what it writes to stderr."""
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(source)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": ROOT, "JAX_PLATFORMS": "cpu", **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def rows(package):
    found = plum_freeze.registrations(package)
    return [
        (r.module.removeprefix(package), r.signature, Path(r.file).name, r.line, r.phase)
        for r in found
    ]


ADOPTED = [
    ("", "(x: object)", "__init__.py", 8, "adopted"),
    ("", "(x: object)", "__init__.py", 13, "adopted"),
]
LATE = [
    (".late", "(x: int)", "late.py", 4),
    (".late", "(x: str)", "late.py", 9),
    (".late", "(x: float)", "late.py", 14),
]


# -- modules that were imported before -----------------------------------------------------------


def test_modules_that_were_imported_before_are_named_once_and_adopted(tmp_path):
    shutil.copytree(PACKAGES / "dispatching", tmp_path / "sample")
    out, err = run(
        """
        import sample, sample.late, warnings
        import plum_freeze
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                plum_freeze.install("sample")
            for warning in caught:
                print(warning.category.__name__, warning.filename, warning.lineno)
                print(warning.message)
        print("--")
        for r in plum_freeze.registrations("sample"):
            print(r.module, r.signature, r.line, r.phase)
        print(sample.f(1), sample.f(1.0), sample.g(1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import sample.same  # after it: not named
            plum_freeze.install("sample")
        print(len(caught))
        """,
        tmp_path,
    )
    assert out[0] == "UserWarning <string> 7"
    assert (
        out[1]
        == 'install("sample") came after 2 modules had registered methods: sample, sample.late.'
    )
    assert re.search(r'call plum_freeze\.install\("sample"\) before', "\n".join(out))
    assert out[out.index("--") + 1 :] == [
        # f comes with all of its methods, then g: nobody saw the order
        "sample (x: object) 8 adopted",
        "sample.late (x: int) 4 adopted",
        "sample.late (x: float) 14 adopted",
        "sample (x: object) 13 adopted",
        "sample.late (x: str) 9 adopted",
        "int float object",
        "0",
    ]
    assert err == ""


def test_a_package_that_installs_at_its_top_is_not_told_of_itself(make):
    name = make()
    file = Path(importlib.util.find_spec(name).origin)
    file.write_text("import plum_freeze\nplum_freeze.install()\n" + file.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module(name)
        importlib.import_module(f"{name}.late")
    assert rows(name) == [
        ("", "(x: object)", "__init__.py", 10, "import"),
        ("", "(x: object)", "__init__.py", 15, "import"),
        *((*row, "import") for row in LATE),
    ]


def test_a_package_that_installs_too_late_in_its_init(make):
    name = make("""
        from . import late, same
        import plum_freeze
        plum_freeze.install()
    """)
    with untracked(), pytest.warns(UserWarning) as caught:
        importlib.import_module(name)
    (warning,) = caught
    early = f"2 modules had registered methods: {name}.late, {name}.same."
    assert f'install("{name}") came after {early}' in str(warning.message)
    assert warning.filename == sys.modules[name].__file__


def test_modules_that_made_no_registration_are_not_named(make, tmp_path):
    name = make()
    (tmp_path / f"empty_{name}.py").write_text("x = 1")
    with untracked():
        importlib.import_module(f"empty_{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plum_freeze.install(f"empty_{name}").uninstall()


def test_where_warnings_are_errors_nothing_was_installed(make, finder):
    name = make()
    with untracked():
        importlib.import_module(name)
    for _ in range(2):  # it has not been said as long as it is an error
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="came after 1 module had"):
                plum_freeze.install(name)
        assert not finder.tracks(name)
    with pytest.warns(UserWarning, match="came after"):
        plum_freeze.install(name).uninstall()


def test_many_names_are_cut(make, tmp_path):
    name = make()
    for i in range(13):
        (tmp_path / name / f"m{i}.py").write_text(
            f"from . import dispatch\nclass C: pass\n@dispatch\ndef f(x: C): return {i}\n"
        )
    with untracked():
        for i in range(13):
            importlib.import_module(f"{name}.m{i}")
    with pytest.warns(UserWarning, match=r"came after 14 modules had.*\.m8 and 4 more\."):
        plum_freeze.install(name).uninstall()


def test_a_script_that_installs_everything_names_what_came_before(tmp_path):
    shutil.copytree(PACKAGES / "dispatching", tmp_path / "sample")
    source = """
        import plum
        @plum.dispatch
        def own(x: int): return x
        {}
        import plum_freeze
        plum_freeze.install()
        import sample.late
        print(own(1), [r.phase for r in plum_freeze.registrations()])
    """
    # Neither plum's own modules nor the script itself.
    out, err = run(source.format(""), tmp_path, "-W", "error")
    assert out == ["1 ['adopted', 'import', 'import', 'import', 'import', 'import']"]
    out, err = run(source.format("import sample"), tmp_path)
    assert "install() came after 1 module had registered methods: sample." in err
    assert out == ["1 ['adopted', 'adopted', 'adopted', 'import', 'import', 'import']"]


# -- installations that overlap, and uninstall ---------------------------------------------------


def test_installations_count(finder):
    one, two = plum_freeze.install("some_package"), plum_freeze.install("some_package", "another")
    one.uninstall()
    one.uninstall()  # does not count twice
    assert finder.tracks("some_package.x")
    two.uninstall()
    assert not finder.tracks("some_package.x")
    assert not finder.tracks("another")
    assert repr(one) == "<plum_freeze installation (ended): some_package>"


# Other test files, run before this one, are modules that registered methods before `install`.
early = pytest.mark.filterwarnings(r"ignore:install\(\) came after:UserWarning")


@early
def test_installations_of_everything_count(finder):
    one, two = plum_freeze.install("*"), plum_freeze.install("*")
    with plum_freeze.install("some_package"):
        one.uninstall()
        one.uninstall()
        assert finder.tracks("anything")
        two.uninstall()
        assert not finder.tracks("anything")
        assert finder.tracks("some_package")
    assert not finder.tracks("some_package")


@early
def test_uninstall_leaves_what_freeze_follows(make, finder):
    name = make()
    with plum_freeze.install("*"):
        sample = importlib.import_module(name)
        plum_freeze.freeze(sample)
    assert finder.tracks(f"{name}.late")
    with pytest.warns(plum_freeze.LateRegistrationWarning, match="3 methods were") as caught:
        importlib.import_module(f"{name}.late")
    assert len(caught) == 1
    assert _hook.seen(f"{name}.late")
    # In the other order, too.
    finder._everything = 0
    plum_freeze.freeze(sample)
    plum_freeze.install("*").uninstall()
    assert finder.tracks(f"{name}.late")


def test_uninstall_keeps_the_record(make):
    name = make()
    with plum_freeze.install(name):
        importlib.import_module(f"{name}.late")
    found = rows(name)
    assert found[2:] == [(*row, "import") for row in LATE]
    importlib.import_module(f"{name}.same")
    assert rows(name)[: len(found)] == found


@pytest.mark.parametrize("package", ["", ".relative", "a..b", "a.", 3, None])
def test_what_is_no_name_is_refused_and_nothing_is_installed(finder, package):
    with pytest.raises(plum_freeze.FreezeError, match="no absolute name"):
        plum_freeze.install("good_package", package)
    assert not finder.tracks("good_package")


# -- modules that were never seen ----------------------------------------------------------------


def test_the_report_names_modules_that_were_never_seen_with_their_loader(make):
    name = make()
    plum_freeze.install(name)
    importlib.import_module(name)
    with untracked():
        importlib.import_module(f"{name}.late")
    report = plum_freeze.report(name)
    assert report.as_dict()["unseen_modules"] == [
        {"module": f"{name}.late", "loader": "SourceFileLoader"}
    ]
    assert f"{name}.late" in str(report)
    assert "SourceFileLoader" in str(report)
    assert _report.unseen_modules([]) == []


def test_modules_behind_jaxtypings_hook_installed_after_ours(tmp_path):
    """unxt does that. They are recorded and attributed, and the report names the loader."""
    pytest.importorskip("jaxtyping")
    shutil.copytree(PACKAGES / "dispatching", tmp_path / "sample")
    out, _ = run(
        """
        import plum_freeze
        plum_freeze.install("sample")
        from jaxtyping import install_import_hook
        with install_import_hook("sample", "beartype.beartype"):
            import sample.late, sample.kinds, sample.same
        for r in plum_freeze.registrations("sample"):
            print(r.module, r.signature, r.file.rpartition("/")[2], r.line, r.phase)
        for each in plum_freeze.report("sample").as_dict()["unseen_modules"]:
            print(each["module"], each["loader"])
        """,
        tmp_path,
    )
    assert out == [
        "sample (x: object) __init__.py 8 import",
        "sample (x: object) __init__.py 13 import",
        "sample.late (x: int) late.py 4 import",
        "sample.late (x: str) late.py 9 import",
        "sample.late (x: float) late.py 14 import",
        "sample.kinds (int, int) kinds.py 13 import",
        "sample.kinds (str, str) kinds.py 13 import",
        "sample.kinds (x: complex, y: complex) kinds.py 18 import",
        "sample.kinds (bytes) kinds.py 23 import",
        "sample.kinds (bytearray) kinds.py 23 import",
        "sample.kinds (memoryview) kinds.py 28 import",
        "sample.kinds (obj: sample.kinds.Metres, _: float) kinds.py 31 import",
        "sample.kinds (t1: sample.kinds.Metres, t2: int) kinds.py 36 import",
        "sample.kinds (t1: int, t2: sample.kinds.Metres) kinds.py 36 import",
        "sample.kinds (self, x: sample.kinds.Metres) kinds.py 40 import",
        *["sample.same (x: sample.same.make.<locals>.Config) same.py 16 import"] * 3,
        "sample _JaxtypingLoader",
        "sample.kinds _JaxtypingLoader",
        "sample.late _JaxtypingLoader",
        "sample.same _JaxtypingLoader",
    ]
