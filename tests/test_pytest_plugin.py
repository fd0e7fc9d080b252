"""The pytest plugin, tried on small suites in processes of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PACKAGE = """
from typing import Any

import plum

registry = plum.Dispatcher()


@registry
def f(x: object):
    return "object"


@registry
def g(x: int) -> int:
    return f(x)
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    monkeypatch.delenv("PLUM_FREEZE", raising=False)
    monkeypatch.delenv("PLUM_FREEZE_ON_LATE", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others import JAX
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.makepyfile(mypkg=PACKAGE)

    def run(*arguments, **files):
        if files:
            pytester.makepyfile(**files)
        plugin = [] if "--by-entry-point" in arguments else ["-p", "plum_freeze._pytest_plugin"]
        arguments = [each for each in arguments if each != "--by-entry-point"]
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin, *arguments)

    return run


IS_FROZEN = """
    import plum_freeze
    import mypkg

    def test_frozen():
        assert plum_freeze.is_frozen(mypkg.f)
"""


def test_it_is_inert_without_the_option(suite):
    result = suite(test_it="""
        import sys

        def test_nothing_is_there(thawed):
            assert "plum_freeze._pytest_plugin" in sys.modules
            assert [m for m in ("plum", "jax", "rich", "numpy", "beartype") if m in sys.modules] == []
    """)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*plum_freeze*")
    result = suite(test_it=IS_FROZEN)
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("target", ["mypkg", "*", " mypkg , plum_freeze._isolation,"])
def test_it_freezes_after_collection(suite, target):
    if "," in target:
        result = suite(f"--plum-freeze={target}", test_it=IS_FROZEN)
        result.stderr.fnmatch_lines(["*no module of plum_freeze._isolation defines a dispatched function*"])
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        return
    result = suite(f"--plum-freeze={target}", test_it=IS_FROZEN + """
    before = plum_freeze.is_frozen(mypkg.f)

    def test_not_before():
        assert not before
    """)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*= plum_freeze =*", f"froze 2 functions of {target} (on_late='accept')"])


def test_a_package_that_no_test_module_imports_is_imported(suite):
    result = suite("--plum-freeze=mypkg", test_it="def test_nothing(): pass")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["froze 2 functions of mypkg*"])


def test_a_package_that_cannot_be_imported_is_a_usage_error(suite):
    result = suite("--plum-freeze=nosuchpkg", test_it="def test_nothing(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--plum-freeze=nosuchpkg: No module named 'nosuchpkg'*"])


def test_the_command_line_wins_over_the_package(suite):
    result = suite("--plum-freeze=mypkg", "--plum-freeze-no-jit", test_it="""
        import plum_freeze
        import mypkg

        plum_freeze.freeze(mypkg, on_late="raise")

        def test_late():
            @mypkg.registry
            def f(x: int): return "int"
            assert mypkg.g.methods and mypkg.f(1) == "int"
    """)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["froze 2 functions of mypkg (on_late='accept', not jitted)"])


REGISTERS = """
    import pytest
    import mypkg

    @pytest.fixture(scope="module")
    def shared():
        @mypkg.registry
        def f(x: bytes):
            return "bytes"

    def test_registers():
        @mypkg.registry
        def f(x: int):
            return "int"

        assert mypkg.f(1) == "int"

    class TestMore:
        def test_starts_as_it_was(self):
            assert mypkg.f(1) == "object"
            assert len(mypkg.f.methods) == 1

        @pytest.fixture
        def own(self):
            @mypkg.registry
            def f(x: str):
                return "str"

        def test_with_fixtures(self, own, shared):
            assert (mypkg.f("a"), mypkg.f(b"a")) == ("str", "bytes")

        def test_keeps_what_is_shared(self):
            assert (mypkg.f("a"), mypkg.f(b"a")) == ("object", "bytes")
"""


def test_each_test_starts_with_the_methods_that_it_found(suite):
    result = suite("--plum-freeze=mypkg", test_it=REGISTERS)
    result.assert_outcomes(passed=4)


def test_nothing_is_taken_back_without_the_option(suite):
    result = suite(test_it=REGISTERS)
    result.assert_outcomes(passed=2, failed=2)


def test_what_replaced_another_method_is_taken_back_and_results_follow(suite):
    result = suite("--plum-freeze=mypkg", test_it="""
        import jax, jax.numpy as jnp, plum
        import mypkg

        x = jnp.arange(3)

        @mypkg.registry
        def h(x: jax.Array):
            return x + 1

        @jax.jit
        def program(x):
            return h(x)

        def test_one():
            assert program(x).tolist() == [1, 2, 3]

            @mypkg.registry
            def h(x: jax.Array):
                return x + 2

            plum.add_conversion_method(int, str, str)

            @mypkg.registry
            def text(x: int) -> str:
                return x

            assert text(1) == "1"
            assert program(x).tolist() == [2, 3, 4]

        def test_two():
            assert program(x).tolist() == [1, 2, 3]
            try:
                plum.convert(1, str)
            except TypeError:
                return
            raise AssertionError("the conversion is still there")
    """)
    result.assert_outcomes(passed=2)


def test_what_a_module_registers_stays(suite, pytester):
    pytester.makepyfile(plugin="""
        import mypkg

        @mypkg.registry
        def f(x: int):
            return "plugin"
    """)
    result = suite("--plum-freeze=mypkg", test_it="""
        import mypkg

        def test_imports():
            import plugin
            assert mypkg.f(1) == "plugin"

        def test_is_still_there():
            assert mypkg.f(1) == "plugin"
    """)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["1 late registration:", "  test_it.py::test_imports", "*mypkg.f(x: int)  at *plugin.py:3"])


def test_the_summary_names_late_registrations_and_their_tests(suite):
    result = suite("--plum-freeze=mypkg", test_it=REGISTERS)
    result.stdout.fnmatch_lines([
        "*= plum_freeze =*",
        "3 late registrations:",
        "  test_it.py::test_registers",
        "    mypkg.f(x: int)  at *test_it.py:11",
        "  test_it.py::TestMore::test_with_fixtures",
        "    mypkg.f(x: bytes)  at *test_it.py:*",
        "    mypkg.f(x: str)  at *test_it.py:*",
    ])  # fmt: skip


def test_on_late_raise_refuses(suite):
    result = suite("--plum-freeze=mypkg", "--plum-freeze-on-late=raise", test_it=REGISTERS)
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines([
        '*mypkg.f was frozen at the command line of pytest (--plum-freeze=mypkg) with on_late="raise"*',
        "2 late registrations:",
        "    mypkg.f(x: int)  at *test_it.py:11, refused",
        "    mypkg.f(x: bytes)  at *test_it.py:6, refused",
    ])  # fmt: skip


def test_on_late_warn_warns(suite):
    result = suite("--plum-freeze=mypkg", "--plum-freeze-on-late=warn", "-Wdefault", test_it=REGISTERS)
    result.stdout.fnmatch_lines(["*LateRegistrationWarning: 1 method was registered late*"])


def test_the_fixture_thawed_makes_registering_free(suite):
    result = suite("--plum-freeze=mypkg", "--plum-freeze-on-late=raise", test_it="""
        import plum_freeze
        import mypkg

        def test_registers(thawed):
            assert not plum_freeze.is_frozen(mypkg.f)

            @mypkg.registry
            def f(x: int):
                return "int"

            assert mypkg.f(1) == "int"

        def test_sealed_again():
            assert plum_freeze.is_frozen(mypkg.f)
            assert mypkg.f(1) == "object"
    """)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*late registration*")


IMPURE = """
    import jax, jax.numpy as jnp, numpy
    import mypkg

    def helper(x):
        return x + helper.count

    helper.count = 0

    @mypkg.registry
    def h(x: jax.Array):
        return getattr(numpy, "add")(0, 0) * 0 + helper(x)

    def test_it():
        h(jnp.arange(3))
        assert h._cache.seal.verify is VERIFY
        assert h._cache.seal.jits(h) is JITS
"""


@pytest.mark.parametrize(("options", "verify", "jits"), [
    ([], False, True), (["--plum-freeze-verify"], True, True), (["--plum-freeze-no-jit"], False, False),
])  # fmt: skip
def test_verify_and_no_jit(suite, options, verify, jits):
    result = suite("--plum-freeze=*", *options, test_it=IMPURE.replace("VERIFY", str(verify)).replace("JITS", str(jits)))
    result.assert_outcomes(passed=1)


def test_plum_freeze_0(suite, monkeypatch):
    monkeypatch.setenv("PLUM_FREEZE", "0")
    result = suite("--plum-freeze=mypkg", test_it=REGISTERS)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["PLUM_FREEZE=0 is set: nothing was frozen"])


def test_a_failing_collection_and_collect_only_freeze_nothing(suite):
    result = suite("--plum-freeze=nosuchpkg", test_it="import nosuchmodule")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["nothing was frozen: the tests were not run"])
    result = suite("--plum-freeze=mypkg", "--collect-only", test_it="def test_it(): pass")
    assert result.ret == 0


def test_doctests_and_unittest(suite):
    result = suite("--plum-freeze=mypkg", "--doctest-modules", test_it='''
        """
        >>> import mypkg
        >>> @mypkg.registry
        ... def f(x: int): return "int"
        >>> mypkg.f(1)
        'int'
        """
        import unittest
        import mypkg

        class Test(unittest.TestCase):
            def test_it(self):
                self.assertEqual(mypkg.f(1), "object")

                @mypkg.registry
                def f(x: int): return "int"

            def test_that(self):
                self.assertEqual(mypkg.f(1), "object")
    ''')
    result.assert_outcomes(passed=3)


def test_with_xdist(suite):
    pytest.importorskip("xdist")
    result = suite("--plum-freeze=mypkg", "-p", "xdist", "-n1", test_it=REGISTERS)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["froze 2 functions of mypkg*", "3 late registrations:", "  test_it.py::test_registers"])


def test_the_entry_point(suite, monkeypatch):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    result = suite("--plum-freeze=mypkg", "--by-entry-point", test_it=IS_FROZEN)
    result.assert_outcomes(passed=1)


def test_nested_runs_leave_no_trace(suite):
    result = suite("-p", "pytester", test_it="""
        import pytest

        def test_it(pytester):
            import mypkg, plum_freeze
            from plum_freeze import _record
            pytester.makepyfile(test_inner="import plum_freeze, mypkg\\ndef test(): assert plum_freeze.is_frozen(mypkg.f)")
            result = pytester.runpytest_inprocess("--plum-freeze=mypkg", plugins=["plum_freeze._pytest_plugin"])
            result.assert_outcomes(passed=1)
            assert not plum_freeze.is_frozen(mypkg.f)
            assert _record.listeners == []
    """)
    result.assert_outcomes(passed=1)
