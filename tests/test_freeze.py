"""freeze, thaw, thawed, is_frozen: targets, policies, bad input, and that functions stay what they are."""

import os
import pickle
import subprocess
import sys
import textwrap
import types
import warnings

import jax
import jax.numpy as jnp
import plum
import pytest

import plum_freeze
from plum_freeze import FreezeError, LateRegistrationWarning, _table

X = jnp.asarray(3.0)


def program():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        "The doc."
        return x * 2

    @dispatch
    def g(x: int) -> float:
        return x / 2

    return dispatch, f, g


def run(source, **env):
    """Run a program in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- targets -------------------------------------------------------------------------------------


def module_with_functions(name, monkeypatch):
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    source = """
        import plum
        dispatch = plum.Dispatcher()
        @dispatch
        def f(x: int): return x
        class C:
            @dispatch
            def method(self, x: int): return x
    """
    exec(textwrap.dedent(source), module.__dict__)
    return module


def test_functions_packages_and_modules(monkeypatch):
    package = module_with_functions("tpkg", monkeypatch)
    sub = module_with_functions("tpkg.sub", monkeypatch)
    near = module_with_functions("tpkg_near", monkeypatch)
    plum_freeze.freeze("tpkg.sub")
    assert [plum_freeze.is_frozen(m.f) for m in (package, sub, near)] == [False, True, False]
    plum_freeze.freeze(package)
    assert plum_freeze.is_frozen(package.C.method)
    assert plum_freeze.is_frozen(package.C().method)
    assert not plum_freeze.is_frozen(near.f)
    plum_freeze.thaw("tpkg")
    assert not any(map(plum_freeze.is_frozen, (package.f, sub.f, package.C.method)))


def test_everything_but_plums_own():
    out = run("""
        import plum, plum_freeze
        d = plum.Dispatcher()
        @d
        def f(x: int): return x
        plum_freeze.freeze("*")
        print(plum_freeze.is_frozen(f), plum_freeze.is_frozen(plum.convert), plum_freeze.is_frozen(plum.promote))
    """)
    assert out == "True False False"


def test_a_script_freezes_what_it_defines():
    out = run("""
        import plum, plum_freeze
        d = plum.Dispatcher()
        @d
        def f(x: int): return x
        plum_freeze.freeze()
        print(plum_freeze.is_frozen(f))
        @d
        def g(x: int): return x
        plum_freeze.freeze()
        print(plum_freeze.is_frozen(g))
    """)
    assert out.split() == ["True", "True"]


@pytest.mark.parametrize(
    ("target", "facts"),
    [
        ("no_such_package", ["'no_such_package'", "no module of that name has been imported", "import"]),
        ("json", ["'json'", "no module of json defines a dispatched function"]),
        (len, ["<built-in function len>", "builtin_function_or_method", "@dispatch"]),
        (3, ["3", "int"]),
        (print, ["plum"]),
    ],
)
@pytest.mark.parametrize("call", [plum_freeze.freeze, plum_freeze.thaw])
def test_unknown_targets(call, target, facts):
    import json  # noqa: F401

    _, f, _ = program()
    with pytest.raises(FreezeError) as info:
        call(f, target)
    for fact in facts:
        assert fact in str(info.value)
    assert not plum_freeze.is_frozen(f)  # nothing half done


def test_a_misspelt_package_is_suggested(monkeypatch):
    module_with_functions("tfields", monkeypatch)
    monkeypatch.setitem(sys.modules, "tfeilds", types.ModuleType("tfeilds"))
    with pytest.raises(FreezeError, match="tfields"):
        plum_freeze.freeze("tfeilds")


@pytest.mark.parametrize("on_late", ["Warn", "", None, 3, "ignore"])
def test_wrong_policy(on_late):
    _, f, _ = program()
    with pytest.raises(FreezeError, match='"warn".*"raise".*"accept"'):
        plum_freeze.freeze(f, on_late=on_late)
    assert not plum_freeze.is_frozen(f)


def test_wrong_policy_from_the_environment(monkeypatch):
    _, f, _ = program()
    monkeypatch.setenv("PLUM_FREEZE_ON_LATE", "shout")
    with pytest.raises(FreezeError, match="'shout'.*PLUM_FREEZE_ON_LATE"):
        plum_freeze.freeze(f)


def test_the_environment_overrides_the_policy(monkeypatch):
    dispatch, f, _ = program()
    monkeypatch.setenv("PLUM_FREEZE_ON_LATE", "raise")
    plum_freeze.freeze(f, on_late="accept")
    with pytest.raises(plum_freeze.LateRegistrationError):

        @dispatch
        def f(x: str):
            return x


def test_freezing_twice():
    dispatch, f, g = program()
    plum_freeze.freeze(f)
    plum_freeze.freeze(f)
    with pytest.raises(FreezeError) as info:
        plum_freeze.freeze(g, f, on_late="raise")
    for fact in ("on_late='warn'", "on_late='raise'", "thaw", __file__):
        assert fact in str(info.value)
    assert not plum_freeze.is_frozen(g)


def test_thawing_what_is_not_frozen():
    _, f, g = program()
    plum_freeze.freeze(g)
    with pytest.raises(FreezeError, match="f is not frozen"):
        plum_freeze.thaw(g, f)
    assert plum_freeze.is_frozen(g)


@pytest.mark.parametrize("jit", ["yes", 3, [4], None])
def test_wrong_jit(jit):
    _, f, _ = program()
    with pytest.raises(FreezeError, match="jit="):
        plum_freeze.freeze(f, jit=jit)
    assert not plum_freeze.is_frozen(f)


def test_switched_off():
    out = run(
        """
        import plum, plum_freeze
        d = plum.Dispatcher()
        plum_freeze.install()
        @d
        def f(x: int): return x
        print(len(plum_freeze.freeze(f).as_dict()["functions"]), plum_freeze.is_frozen(f), type(f._cache).__name__)
        with plum_freeze.thawed(f):
            plum_freeze.thaw(f)
        print(plum_freeze.registrations(), f(3))
        """,
        PLUM_FREEZE="0",
    )
    assert out == "0 False dict\n[] 3"


def test_unknown_plum_stays_plain():
    out = run("""
        import warnings, plum
        from plum_freeze import _plum
        import plum_freeze
        _plum.unknown_names = lambda: ["Function._cache"]
        d = plum.Dispatcher()
        @d
        def f(x: int): return x
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plum_freeze.freeze(f)
            plum_freeze.freeze(f)
        print(len(caught), "Function._cache" in str(caught[0].message), plum_freeze.is_frozen(f), f(3))
    """)
    assert out == "1 True False 3"


def test_jax_that_is_too_old():
    out = run("""
        import jax, plum
        del jax.make_user_context
        import plum_freeze
        d = plum.Dispatcher()
        @d
        def f(x: int): return x
        try:
            plum_freeze.freeze(f)
        except plum_freeze.FreezeError as error:
            print("0.7.2" in str(error), jax.__version__ in str(error), "pip install" in str(error))
        print(plum_freeze.is_frozen(f), f(3))
    """)
    assert out == "True True True\nFalse 3"


def test_one_function_that_cannot_be_sealed(monkeypatch):
    _, f, g = program()
    plum_freeze.freeze(plum.Dispatcher()(lambda x: x))
    change_seal = _table.Table.change_seal

    def failing(self, seal):
        if self.function is f and seal is not None:
            raise RuntimeError("no")
        change_seal(self, seal)

    monkeypatch.setattr(_table.Table, "change_seal", failing)
    report = plum_freeze.freeze(f, g)
    assert not plum_freeze.is_frozen(f)
    assert plum_freeze.is_frozen(g)
    assert float(f(X)) == 6.0
    assert "RuntimeError: no" in str(report)


# -- what a frozen function is -------------------------------------------------------------------


def test_it_stays_what_it_is():
    _, f, g = program()
    before = (f.__name__, f.__qualname__, f.__doc__, repr(f), f.methods, f.__wrapped__)
    plum_freeze.freeze(f, g)
    assert (f.__name__, f.__qualname__, f.__doc__, repr(f), f.methods, f.__wrapped__) == before
    assert isinstance(f, plum.Function)
    f.mark = 1
    assert f.mark == 1
    assert g.methods[0].implementation is g.resolve_method((1,))[0]
    assert g.invoke(int)(1) == 0.5
    assert g.invoke(int).__wrapped_by_plum__ is g.methods[0].implementation


def module_function():
    """For pickling by name."""


dispatch = plum.Dispatcher()


@dispatch
def pickled(x: int):
    return x


def test_pickling_by_name_is_as_before():
    def attempt():
        try:
            return pickle.loads(pickle.dumps(pickled))
        except Exception as error:
            return type(error), str(error)

    before = attempt()
    plum_freeze.freeze(pickled)
    after = attempt()
    assert type(after) is type(before)
    plum_freeze.thaw(pickled)


def test_clear_cache_leaves_it_sealed():
    _, f, g = program()
    plum_freeze.freeze(f, g)
    for _ in range(2):
        assert (float(f(X)), g(3)) == (6.0, 1.5)
        plum.clear_all_cache()
        assert (float(f(X)), g(3)) == (6.0, 1.5)
        f.clear_cache(reregister=False)
    assert plum_freeze.is_frozen(f)


def test_a_replaced_cache_is_plain_plum_until_it_is_sealed_again():
    dispatch, f, _ = program()
    plum_freeze.freeze(f)
    f._cache = {}
    assert float(f(X)) == 6.0
    assert not plum_freeze.is_frozen(f)
    plum_freeze.freeze(f)
    assert plum_freeze.is_frozen(f)


def test_thawed():
    dispatch, f, _ = program()
    plum_freeze.freeze(f, on_late="raise")
    call = jax.jit(lambda x: f(x))
    assert float(call(X)) == 6.0
    with plum_freeze.thawed(f):
        assert not plum_freeze.is_frozen(f)

        @dispatch
        def f(x: jax.Array):
            return x * 4

        assert float(call(X)) == 12.0
    assert plum_freeze.is_frozen(f)
    assert float(call(X)) == float(f(X)) == 12.0
    with pytest.raises(plum_freeze.LateRegistrationError):

        @dispatch
        def f(x: str):
            return x


def test_thawed_seals_again_after_an_exception():
    _, f, _ = program()
    plum_freeze.freeze(f)
    with pytest.raises(ZeroDivisionError), plum_freeze.thawed(f):
        1 / 0
    assert plum_freeze.is_frozen(f)


def test_thaw_is_for_good_and_free():
    dispatch, f, _ = program()
    plum_freeze.freeze(f, on_late="raise")
    call = jax.jit(lambda x: f(x))
    assert float(call(X)) == 6.0
    plum_freeze.thaw(f)

    @dispatch
    def f(x: jax.Array):
        return x * 4

    assert float(call(X)) == 12.0


def test_forward_references_stay_pending(monkeypatch):
    dispatch = plum.Dispatcher()
    module = types.ModuleType("tforward")
    monkeypatch.setitem(sys.modules, "tforward", module)
    namespace = module.__dict__
    module.dispatch = dispatch
    exec("@dispatch\ndef area(s: 'Square'): return s.a\n@dispatch\ndef area(s: int): return -1", namespace)
    area = namespace["area"]
    with pytest.raises(Exception, match="Square") as plain:
        area(5)
    plum_freeze.freeze(area)
    with pytest.raises(plain.type, match="Square"):
        area(5)
    exec("class Square: a = 3", namespace)
    assert area(5) == -1
    assert area(namespace["Square"]()) == 3


def test_only_the_packages_own_methods_are_jitted(monkeypatch):
    owner = module_with_functions("towner", monkeypatch)
    guest = types.ModuleType("tguest")
    monkeypatch.setitem(sys.modules, "tguest", guest)
    guest.dispatch = owner.dispatch
    source = """
        import jax
        from plum import Dispatcher
        @dispatch
        def f(x: jax.Array): return x + 1
        @Dispatcher()
        def own(x: int): return x
    """
    exec(textwrap.dedent(source), guest.__dict__)
    plum_freeze.freeze("towner", on_late="accept")
    owner.f(X)
    (compiled,) = _table.table_of(owner.f).methods.values()
    assert not compiled.jits
    plum_freeze.freeze("tguest", on_late="accept")
    owner.f(X)
    assert compiled.jits
    assert float(owner.f(X)) == 4.0


# -- promises about imports ----------------------------------------------------------------------


def test_importing_it_imports_little():
    out = run("""
        import sys, plum_freeze
        print([name for name in ("jax", "jaxtyping", "numpy", "rich", "plum", "beartype") if name in sys.modules])
    """)
    assert out == "[]"


def test_that_promise_can_be_broken():
    out = run("import sys, plum_freeze, plum; print('rich' in sys.modules)")
    assert out == "True"


def test_without_jax():
    out = run("""
        import sys
        class NoJax:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("jax", "jaxlib", "jaxtyping"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, NoJax())
        import plum, plum_freeze
        d = plum.Dispatcher()
        plum_freeze.install()
        @d
        def f(x: int) -> float: return x / 2
        @d
        def f(x: list[str]): return x
        print(plum_freeze.freeze(f, on_late="accept") is not None)
        @d
        def f(x: str): return x * 2
        print(f(3), f("a"), f(["b"]), [r.phase for r in plum_freeze.registrations()])
        print("jax" in sys.modules)
    """)
    assert out.splitlines() == ["True", "1.5 aa ['b'] ['import', 'import', 'late']", "False"]


def test_sealing_starts_no_backend():
    out = run("""
        import jax, plum, plum_freeze
        from jax._src import xla_bridge
        d = plum.Dispatcher()
        plum_freeze.install()
        @d
        def f(x: jax.Array) -> jax.Array: return x
        print(str(plum_freeze.freeze(f))[:0], xla_bridge.backends_are_initialized())
    """)
    assert out == "False"


def test_late_warnings_can_be_filtered_by_module():
    dispatch, f, _ = program()
    plum_freeze.freeze(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=LateRegistrationWarning, module=__name__)

        @dispatch
        def f(x: str):
            return x

    assert f("s") == "s"


def test_the_log_tells_of_seals_and_invalidations(caplog):
    dispatch, f, _ = program()
    with caplog.at_level("DEBUG", logger="plum_freeze"):
        plum_freeze.freeze(f, on_late="accept")
        assert float(jax.jit(lambda x: f(x))(X)) == 6.0

        @dispatch
        def f(x: jax.Array):
            return x * 4

    for fact in ("sealed tests.test_freeze", "froze 1 functions at", "decisions change", "compiled again"):
        assert fact in caplog.text


def test_what_is_named_is_not_looked_through_for_each_function(monkeypatch):
    """Thousands of functions are frozen by name: the time is to grow as they do."""
    compared = []

    class Module(types.ModuleType):
        def __eq__(self, other):
            compared.append(other)
            return self is other

        __hash__ = types.ModuleType.__hash__

    module = Module("named")
    definitions = "\n".join(f"@dispatch\ndef f{n}(x: int): return x" for n in range(50))
    monkeypatch.setitem(sys.modules, "named", module)
    exec(f"import plum\ndispatch = plum.Dispatcher()\n{definitions}", vars(module))
    plum_freeze.freeze(module, on_late="accept")
    assert all(plum_freeze.is_frozen(getattr(module, f"f{n}")) for n in range(50))
    assert len(compared) <= 10
