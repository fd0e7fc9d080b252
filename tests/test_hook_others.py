"""The import hook among the other hooks, each pair in a process of its own, in both orders.

Each script is told the order as its first argument. The effect of the other hook must stay, and
so must ours.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plum_freeze import _hook

PACKAGES = Path(__file__).parent / "packages"
ROOT = str(Path(_hook.__file__).parents[1])

PREAMBLE = """
import sys
from plum_freeze import _hook

class Events:
    def __init__(self):
        self.log = []
    def started(self, name):
        self.log.append("+" + name)
    def ended(self, name, module, error):
        self.log.append(("-" if error is None else "!") + name)

events = Events()

def ours(*packages):
    finder = _hook.finder(events)
    for package in packages:
        finder.track(package)

def in_order(order, other):
    for step in (ours_first, other) if order == "ours first" else (other, ours_first):
        step()

def ours_first():
    ours("sample")
"""
ORDERS = pytest.mark.parametrize("order", ["ours first", "theirs first"])
CHECKED_LOG = "+sample +sample.core +sample.leaf -sample.leaf -sample.core -sample"


@pytest.fixture
def run(tmp_path):
    """Runs a script, after the preamble, in a folder with a sample package called `sample`."""

    def run(source, *args, sample="checked", command=(), preamble=PREAMBLE, **env):
        if sample and not (tmp_path / "sample").exists():
            shutil.copytree(PACKAGES / sample, tmp_path / "sample")
        if source is not None:
            (tmp_path / "script.py").write_text(preamble + textwrap.dedent(source))
            command = [*command, tmp_path / "script.py"]
        path = os.pathsep.join([str(tmp_path), ROOT])
        result = subprocess.run(
            [sys.executable, *command, *args],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": path, **env},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout.splitlines()

    return run


def needs(name):
    return pytest.mark.skipif(
        importlib.util.find_spec(name) is None, reason=f"{name} is not installed"
    )


# --- hooks of type checkers -------------------------------------------------------------------

CHECK = """
try:
    sample.core.wrong()
except Exception as error:
    print(type(error).__name__)
print(*events.log)
print(_hook.seen("sample.core"))
print(sample.core.method.module, sample.core.method.line, sample.core.method.executing)
print(type(sample.core.__loader__).__name__)
"""


@needs("beartype")
@ORDERS
def test_beartype_claw(run, order):
    source = """
    def other():
        from beartype.claw import beartype_package
        beartype_package("sample")

    in_order(sys.argv[1], other)
    import sample
    """
    assert run(textwrap.dedent(source) + CHECK, order) == [
        "BeartypeCallHintReturnViolation",
        CHECKED_LOG,
        "True",
        "sample.core 6 True",
        "BeartypeSourceFileLoader",
    ]


@needs("typeguard")
@needs("jaxtyping")
@pytest.mark.parametrize("hook", ["typeguard", "jaxtyping"])
@ORDERS
def test_hooks_that_make_the_loader_anew(run, hook, order):
    """Installed after ours, they look for the files themselves: we are not asked.

    The registrations are seen all the same, and whose they are; and that we were passed by.
    """
    source = """
    def other():
        if sys.argv[2] == "typeguard":
            import typeguard
            typeguard.install_import_hook("sample")
        else:
            import jaxtyping
            jaxtyping.install_import_hook("sample", "beartype.beartype")

    in_order(sys.argv[1], other)
    import sample
    """
    passed_by = order == "ours first"
    assert run(textwrap.dedent(source) + CHECK, order, hook) == [
        "TypeCheckError",
        "" if passed_by else CHECKED_LOG,
        str(not passed_by),
        "sample.core 6 True",
        {"typeguard": "TypeguardLoader", "jaxtyping": "_JaxtypingLoader"}[hook],
    ]


@needs("jaxtyping")
def test_a_package_that_installs_jaxtypings_hook_in_its_own_init(run, tmp_path):
    """As unxt does. The package itself came by before; its submodules do not."""
    package = tmp_path / "sample"
    shutil.copytree(PACKAGES / "checked", package)
    (package / "__init__.py").write_text(
        "from jaxtyping import install_import_hook\n"
        "with install_import_hook('sample', 'beartype.beartype'):\n    from . import core\n"
        "from . import after\n"
    )
    (package / "after.py").touch()
    out = run("ours_first()\nimport sample\n" + CHECK)
    assert out[:3] == ["TypeCheckError", "+sample +sample.after -sample.after -sample", "False"]
    assert out[3] == "sample.core 6 True"


# --- hooks that watch -------------------------------------------------------------------------


@ORDERS
def test_wrapts_post_import_hooks(run, order):
    source = """
    import wrapt

    def other():
        for name in ("sample", "sample.core"):
            wrapt.register_post_import_hook(lambda module: print(module.__name__), name)

    in_order(sys.argv[1], other)
    import sample
    print(*events.log)
    for module in (sample, sample.core, sample.leaf):
        assert type(module.__loader__).__name__ == "SourceFileLoader"
        assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    """
    assert run(source, order) == ["sample.core", "sample", CHECKED_LOG]


@needs("coverage")
@ORDERS
def test_coverage(run, order, tmp_path):
    source = """
    import coverage
    measured = coverage.Coverage(data_file=None, source_pkgs=["sample"], config_file=False)
    in_order(sys.argv[1], measured.start)
    import sample
    sample.core.wrong()
    measured.stop()
    print(*events.log)
    for module in (sample, sample.core, sample.leaf):
        _, lines, _, missing, _ = measured.analysis2(module)
        print(len(lines) - len(missing), missing)
    """
    assert run(source, order) == [CHECKED_LOG, "1 []", "6 [8]", "1 []"]


PYTEST_CONFTEST = """
def pytest_sessionfinish():
    print()
    print("LOG", *events.log)

ours("sample", "test_sample", "conftest")
"""
PYTEST_TEST = """
from sample.core import method
from plum_freeze._origin import find

@find
def here(x): return x

def test_origin():
    assert here.line == 5
    assert method.line == 6
    @find
    def inner(x): return x
    assert (inner.line, inner.executing) == (11, False)
    assert inner.module == here.module == __name__

def test_rewritten():
    left, right = 6, 7
    assert left * right == 43
"""


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
@pytest.mark.parametrize("where", ["conftest", "plugin"])
def test_pytests_rewriting(run, tmp_path, mode, where):
    """The hook is put in place by the conftest, or by a plugin, before there is a rewriter."""
    (tmp_path / f"{where}.py").write_text(PREAMBLE + PYTEST_CONFTEST)
    (tmp_path / "test_sample.py").write_text(PYTEST_TEST)
    plugin = ["-p", "plugin"] if where == "plugin" else []
    script = """
    import sys, pytest
    pytest.main(sys.argv[1:])
    """
    arguments = ["-q", "-s", "-p", "no:cacheprovider", f"--import-mode={mode}", *plugin]
    out = run(script, *arguments, "test_sample.py", preamble="")
    assert "E       assert (6 * 7) == 43" in out
    assert "1 failed, 1 passed" in out[-1]
    (log,) = [line for line in out if line.startswith("LOG")]
    assert log == f"LOG +test_sample {CHECKED_LOG} -test_sample"


# --- ways to run and to find ------------------------------------------------------------------


def test_python_m(run, tmp_path):
    """With the hook put in place by a `.pth` file or a `sitecustomize`, before runpy looks."""
    (tmp_path / "sitecustomize.py").write_text(PREAMBLE + "ours('sample')")
    out = run(None, "-m", "sample", "an argument", sample="tool")
    assert out == [
        "sample.tool ('sample.tool',) def source(): method",
        "__main__ ['an argument'] sample.tool __main__ 12 True",
    ]
    assert run(None, "-m", "sample.tool") == ["__main__ () def source(): method"]


@needs("IPython")
def test_autoreload(run):
    """IPython reloads a module, or (since 9) executes what has changed in it, which is no import."""
    source = """
    import os, pathlib, types
    from IPython.extensions.autoreload import ModuleReloader, superreload

    ours_first()
    import sample
    file = pathlib.Path(sample.leaf.__file__)
    reloader = ModuleReloader(types.SimpleNamespace())
    reloader.check(check_all=True)

    def edit(text, time):
        file.write_text(text)
        os.utime(file, (time, time))
        events.log.clear()

    edit("LEAF = 22", 2e9)
    reloader.check(check_all=True)
    print(sample.leaf.LEAF, len(events.log) in (0, 2))

    edit("LEAF = 333", 2.1e9)
    superreload(sample.leaf)
    print(sample.leaf.LEAF, *events.log)
    """
    assert run(source) == ["22 True", "333 +sample.leaf -sample.leaf"]


EDITABLE = """
ours_first()
import sample
print(*events.log)
print(sample.__file__)
"""


def test_editable_installs_of_setuptools(run, tmp_path):
    """The finder that `pip install -e` writes where a package is not in a folder of its name."""
    editable = pytest.importorskip("setuptools.command.editable_wheel")
    source = shutil.copytree(PACKAGES / "checked", tmp_path / "elsewhere" / "src")
    text = editable._finder_template("finder", {"sample": str(source)}, {})
    (tmp_path / "editable_finder.py").write_text(text)
    script = "import editable_finder\neditable_finder.install()\n" + EDITABLE
    assert run(script, sample=None) == [CHECKED_LOG, str(source / "__init__.py")]


REDIRECTS = """
from editables.redirector import RedirectingFinder
RedirectingFinder.install()
RedirectingFinder.map_module("sample", sys.argv[1] + "/sample/__init__.py")
"""
ADDS_A_PATH = """
import site, pathlib
folder = pathlib.Path("site")
folder.mkdir()
(folder / "sample.pth").write_text(sys.argv[1])
site.addsitedir(str(folder))
"""


@pytest.mark.parametrize(
    "install", [pytest.param(REDIRECTS, marks=needs("editables"), id="finder"), ADDS_A_PATH]
)
def test_editable_installs_of_other_backends(run, tmp_path, install):
    """hatchling and others: the finder of `editables`, or a `.pth` file with a path."""
    source = shutil.copytree(PACKAGES / "checked", tmp_path / "elsewhere" / "sample")
    out = run(install + EDITABLE, source.parent, sample=None)
    assert out == [CHECKED_LOG, str(source / "__init__.py")]


def test_a_plugin_that_is_loaded_through_an_entry_point(run, tmp_path):
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sample.plugins]\nfast = plugin.methods:method\n")
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "__init__.py").touch()
    shutil.copy(PACKAGES / "lazily" / "late.py", plugin / "methods.py")
    source = """
    import importlib.metadata
    ours("sample", "plugin")
    (entry,) = importlib.metadata.entry_points(group="sample.plugins")
    method = entry.load()
    print(*events.log)
    print(method.module, method.file, method.line, method.executing)
    """
    assert run(source) == [
        "+plugin -plugin +plugin.methods -plugin.methods",
        f"plugin.methods {plugin / 'methods.py'} 4 True",
    ]


@needs("jax")
def test_a_submodule_that_is_first_touched_inside_a_traced_function(run, tmp_path):
    source = """
    import jax, sample
    ours_first()

    @jax.jit
    def traced(x):
        method = sample.late.method
        print(method.module, method.line, method.executing, *events.log)
        return x + 1

    print(traced(1), traced(2))
    """
    assert run(source, sample="lazily", JAX_PLATFORMS="cpu") == [
        "sample.late 4 True +sample.late -sample.late",
        "2 3",
    ]
