"""Who makes a registration: module, file and line, for what people really register."""

import functools
import importlib
import linecache
import runpy
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import wrapt

from plum_freeze import _hook
from plum_freeze._origin import Origin, find

PACKAGES = Path(__file__).parent / "packages"
HERE = __file__


class Silent:
    def started(self, name):
        pass

    def ended(self, name, module, error):
        pass


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Copies a sample package under a unique name, and imports it without any hook."""
    monkeypatch.syspath_prepend(tmp_path)
    loaded = set(sys.modules)

    def make(kind):
        name = f"{kind}_{tmp_path.name.replace('-', '_')}"
        shutil.copytree(PACKAGES / kind, tmp_path / name)
        importlib.invalidate_caches()
        return name

    yield make
    for name in set(sys.modules) - loaded:
        del sys.modules[name]


@pytest.fixture
def tracked(sample):
    """The same, with the hook in place, for modules that importlib does not call initializing."""
    before = _hook._the_finder and _hook._the_finder.listener
    finder = _hook.finder(Silent())
    made = []

    def make(kind):
        made.append(sample(kind))
        finder.track(made[-1])
        return made[-1]

    yield make
    for name in made:
        finder.forget(name)
    finder.listener = before or finder.listener


def text(origin):
    return linecache.getline(origin.file, origin.line).strip()


def line_of(source, path=HERE):
    return Path(path).read_text().splitlines().index(source) + 1


def register(function):
    """A helper that registers for its caller, as quax.register does for unxt."""
    return find(function)


def as_package(name, path, source):
    """`source` as a module of that name and path would run it."""
    namespace = {"__name__": name, "find": find}
    exec(compile(source, path, "exec"), namespace)
    return namespace


def test_a_module_that_is_executing(sample, tmp_path):
    name = sample("plain")
    origin = importlib.import_module(name).core.add
    core = tmp_path / name / "core.py"
    assert origin == Origin(f"{name}.core", str(core), line_of("@find", core), executing=True)
    assert text(origin) == "@find"


def test_a_function_that_is_called_after_the_import(sample):
    name = sample("plain")
    origin = importlib.import_module(name).fields.late()
    assert (origin.module, origin.executing) == (f"{name}.fields", False)
    assert text(origin) == "@find"


def test_helpers_and_wrappers_in_the_same_module(sample):
    name = sample("plain")
    fields = importlib.import_module(name).fields
    for origin in (fields.through_a_helper, fields.cached):
        assert (origin.module, origin.executing) == (f"{name}.fields", True)
        assert text(origin) == "@register"
    # What another module has written is registered here, not there.
    assert text(fields.foreign) == "return find(function)"
    assert fields.foreign.module == f"{name}.fields"


def test_a_helper_of_another_module_registers_for_the_module_that_executes(
    sample, monkeypatch, tmp_path
):
    helper = as_package("helper", str(tmp_path / "helper.py"), "def register(f): return find(f)")
    monkeypatch.setattr("plum_freeze._origin.find", helper["register"])
    name = sample("plain")
    origin = importlib.import_module(name).core.add
    assert (origin.module, origin.executing) == (f"{name}.core", True)
    assert origin.file == str(tmp_path / name / "core.py")
    assert text(origin) == "@find"
    # A function from elsewhere has no line in a file that makes the call.
    origin = helper["register"](shutil.copytree)
    assert (origin.file, origin.line) == (str(tmp_path / "helper.py"), 1)


def test_a_helper_of_a_package_that_is_still_executing(sample):
    name = sample("helping")
    origin = importlib.import_module(name).core.method
    assert (origin.module, origin.executing) == (f"{name}.core", True)
    assert text(origin) == "@register"


def test_a_registration_inside_a_test_is_the_tests():
    # There is a `<module>` frame on the stack: the body of the script that started pytest.
    @find
    def method(x):
        return x

    assert method == Origin(__name__, HERE, line_of("    @find"), executing=False)


def test_a_registration_in_a_thread_is_that_of_the_module_whose_code_makes_it():
    result = []

    def work():
        result.append(find(lambda x: x))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    line = line_of("        result.append(find(lambda x: x))")
    assert result == [Origin(__name__, HERE, line, executing=False)]


def test_a_thread_that_runs_while_its_module_executes(tracked):
    name = tracked("threads")
    origin = importlib.import_module(name).seen_by_thread[-1]
    assert (origin.module, origin.executing) == (f"{name}.inside", True)


def test_a_module_that_is_reloaded_is_executing(tracked):
    # importlib marks a module as initializing at the first import only.
    name = tracked("plain")
    core = importlib.import_module(name).core
    core.add = None
    importlib.reload(core)
    assert (core.add.module, core.add.executing) == (f"{name}.core", True)


def test_frames_of_the_machinery_are_passed_over(tmp_path):
    def wrapped(wrapper, instance, args, kwargs):
        return wrapper(*args, **kwargs)

    def method(x):
        return x

    line = line_of("    def method(x):", HERE)
    source = "def call(f, *args): return f(*args)"
    call = functools.reduce(
        lambda inner, name: functools.partial(as_package(name, "x.py", source)["call"], inner),
        [
            "plum",
            "plum._function",
            "wrapt.decorators",
            "functools",
            "beartype._x",
            "plum_freeze._y",
        ],
        find,
    )
    assert call(method).module == __name__
    assert (call(None).file, call(None).module) == (HERE, __name__)
    # Names that only look alike are not passed over.
    other = as_package("plumbing", "plumbing.py", source)["call"]
    assert other(find, None) == Origin("plumbing", "plumbing.py", 1, executing=False)
    assert other(call, method).line == method.__code__.co_firstlineno >= line


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


class Callable:
    def __call__(self, x):
        return x

    def method(self, x):
        return x


def plain(x):
    return x


@wrapt.decorator
def by_wrapt(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs)


WRAPPED = {
    "plain": plain,
    "decorated here": decorate(plain),
    "partial": functools.partial(plain, 1),
    "cache": functools.cache(plain),
    "wrapt proxy": wrapt.ObjectProxy(plain),
    "wrapt decorator": by_wrapt(plain),
    "staticmethod": staticmethod(plain),
    "nested": functools.cache(functools.partial(decorate(plain))),
}
UNKNOWN = {"callable": Callable(), "builtin": len, "none": None, "foreign": shutil.copytree}


@pytest.mark.parametrize("kind", WRAPPED)
def test_the_line_is_that_of_the_functions_own_code(kind):
    origin = find(WRAPPED[kind])
    assert (origin.file, text(origin)) == (HERE, "def plain(x):")


def test_a_function_that_pretends_to_be_another():
    method = functools.wraps(shutil.copytree)(lambda x: x)
    origin = find(method)
    assert (origin.file, text(origin)) == (
        HERE,
        "method = functools.wraps(shutil.copytree)(lambda x: x)",
    )


@pytest.mark.parametrize("kind", UNKNOWN)
def test_the_line_is_that_of_the_call_for_what_is_not_written_here(kind):
    origin = find(UNKNOWN[kind])
    assert (origin.file, text(origin)) == (HERE, "origin = find(UNKNOWN[kind])")


def test_bound_methods():
    assert text(find(Callable().method)) == "def method(self, x):"


def test_a_ring_of_wrappers_ends():
    def ring(x):
        return x

    ring.__wrapped__ = ring
    assert text(find(ring)) == "def ring(x):"


def test_a_function_jitted_by_jax():
    jax = pytest.importorskip("jax")
    assert text(find(jax.jit(plain))) == "def plain(x):"
    assert text(find(jax.jit(functools.partial(plain)))) == "def plain(x):"


def test_a_function_checked_by_beartype_and_jaxtyping():
    beartype = pytest.importorskip("beartype")
    jaxtyping = pytest.importorskip("jaxtyping")

    def method(x: int) -> int:
        return x

    for checked in (
        beartype.beartype(method),
        jaxtyping.jaxtyped(typechecker=beartype.beartype)(method),
    ):
        assert text(find(checked)) == "def method(x: int) -> int:"


def test_no_module_is_asked_for_an_attribute(sample):
    name = sample("lazily")
    module = importlib.import_module(name)
    origin = module.late.method
    assert (origin.module, origin.executing) == (f"{name}.late", True)
    assert "__spec__" not in module.asked
    assert "__dict__" not in module.asked


def test_code_that_only_looks_like_a_module_is_not_executing(sample):
    """`exec`, doctest and notebook cells run frames that are called `<module>`."""
    name = sample("plain")
    core = importlib.import_module(f"{name}.core")
    exec(compile("ORIGIN = find(None)", "<doctest>", "exec"), core.__dict__)
    assert core.ORIGIN == Origin(f"{name}.core", "<doctest>", 1, executing=False)
    assert as_package("odd", "odd.py", "x = find(None)")["x"].module == "odd"
    namespace = {"find": find}
    exec("x = find(None); del __builtins__", namespace)
    assert namespace["x"].line == 1


SCRIPT = """
import sys
from plum_freeze._origin import find
import helper

def main():
    @find
    def method(x): return x
    return method

@find
def top(x): return x

@helper.register
def helped(x): return x

for origin in (top, main(), helped, helper.own()):
    print(origin.module, origin.line, origin.executing)
"""
HELPER = """
from plum_freeze._origin import find

def register(f): return find(f)

def own():
    @find
    def method(x): return x
    return method
"""


def test_a_script_makes_what_is_written_in_it_and_no_more(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    root = str(Path(_hook.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": root},
    )  # fmt: skip
    assert run.stdout.splitlines() == [
        "__main__ 11 True",
        "__main__ 7 True",
        "__main__ 14 True",
        "helper 7 False",
    ]


def test_a_script_as_multiprocessing_spawns_it(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    namespace = runpy.run_path(str(tmp_path / "script.py"), run_name="__mp_main__")
    sys.modules.pop("helper")
    assert (namespace["helped"].module, namespace["helped"].executing) == ("__mp_main__", True)
