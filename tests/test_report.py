"""The report: what it says of each method, and how it looks."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import plum
import pytest

import plum_freeze
from plum_freeze import _remedies, _render, _report

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jaxtyping import Array, Float  # noqa: E402, TC002  dispatch needs them

COUNT = 0


def facts_of(report, index=0):
    return report.facts()[index]


def runs(report):
    """How each method runs, by the last hint of its signature."""
    return {
        m.signatures[0].strip("()").split(": ")[-1].split(".")[-1]: m
        for m in facts_of(report).methods
    }


@pytest.fixture
def frozen():
    """A function with a method of each kind, called once each."""
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array, y: Array):
        return x + y

    @dispatch
    def f(x: Array, y: int):
        if x.sum() > 0:
            return x + y
        return x * y

    @dispatch
    def f(x: Array, y: np.ndarray):
        return x + y

    @dispatch
    def f(x: Array, y: str):
        global COUNT
        COUNT += 1
        return x * 2

    @dispatch
    def f(x: Array, y: bytes):
        return len(y)

    @dispatch
    @plum_freeze.eager
    def f(x: Array, y: float):
        return x * y

    @dispatch
    def f(x: Array, y: dict):
        return x

    report = plum_freeze.freeze(f)
    x = jnp.arange(3.0)
    for y in (x, 1, np.ones(3), "a", b"a", 1.0):
        f(x, y)
        f(x, y)  # the first call of each kind runs plainly
    return f, report


# -- how each method runs ------------------------------------------------------------------------


def test_each_method_says_how_it_runs_and_why(frozen):
    found = runs(frozen[1])
    assert found["Array"].words == "jitted"
    assert found["int"].words.startswith("plain: branches on a traced value (test_report.py:")
    assert found["ndarray"].words == "plain: argument 2 (numpy.ndarray)"
    assert found["str"].words.startswith("plain: writes global COUNT (test_report.py:")
    assert found["bytes"].words.startswith("plain: returns int")
    assert found["float"].words == "plain: marked with @eager"
    assert found["dict"].words == "not called yet"


def test_each_reason_has_a_remedy_in_words(frozen):
    found = runs(frozen[1])
    assert "jax.lax.cond" in found["int"].reasons[0].remedy
    assert "jnp.asarray" in found["ndarray"].reasons[0].remedy
    assert "@eager" in found["str"].reasons[0].remedy
    assert found["bytes"].reasons[0].remedy


def test_what_the_code_shows_is_said_before_any_call():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array):
        print(x)
        return x

    (method,) = facts_of(plum_freeze.freeze(f)).methods
    assert method.words.startswith("not called yet; will run plainly: calls print (test_report.py:")


def test_jitted_for_some_calls_and_plain_for_others():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array, y):
        return x * 2

    report = plum_freeze.freeze(f)
    f(jnp.ones(3), 1)
    (method,) = facts_of(report).methods
    assert method.words == "called once: compiled when such a call comes again"
    f(jnp.ones(3), 1)
    f(jnp.ones(3), object())
    (method,) = facts_of(report).methods
    assert method.runs == "partly jitted"
    assert "argument 2 (object)" in method.words
    assert method.compiled >= 1


def test_a_method_that_its_author_jitted():
    dispatch = plum.Dispatcher()

    @dispatch
    @jax.jit
    def f(x):
        return x

    (method,) = facts_of(plum_freeze.freeze(f)).methods
    assert method.words == "jitted by its author"
    assert method.file == __file__


def test_no_jit_is_said():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array):
        return x * 2

    report = plum_freeze.freeze(f, jit=False)
    f(jnp.ones(3))
    (method,) = facts_of(report).methods
    assert method.words == "plain: freeze(jit=...) leaves it out"


def test_a_function_that_is_not_frozen():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    facts = facts_of(plum_freeze.report(f))
    assert not facts.frozen
    assert facts.methods[0].words == "not frozen"
    assert facts_of(plum_freeze.freeze(f)).frozen


def test_methods_of_default_values_are_one_method():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array, y: int = 1, z: int = 2):
        return x

    (method,) = facts_of(plum_freeze.report(f)).methods
    assert len(method.signatures) == 3


def test_every_reason_of_the_jit_has_its_words():
    for reason in (
        "argument 1 (numpy.ndarray)", "argument x (list)", "returns int", "keeps a tracer: it",
        "branches on a traced value (a.py:1)", "calls g, which writes global X (a.py:1)",
        "cannot be compiled: TypeError: x", "returns an argument as it is",
    ):  # fmt: skip
        assert _remedies.remedy(reason), reason
    assert _remedies.remedy("marked with @eager") == ""


# -- the rest of the facts -----------------------------------------------------------------------


def test_late_registrations_with_their_place(frozen):
    f, report = frozen
    with pytest.warns(plum_freeze.LateRegistrationWarning):

        @f.dispatch
        def f(x: Array, y: set):
            return x

    (late,) = facts_of(report).late
    assert late.module == __name__
    assert late.file == __file__
    assert "set" in late.signature


def test_annotations_that_cannot_be_resolved_yet():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    @dispatch
    def f(x: "NotThere"):  # noqa: F821
        return x

    @dispatch
    def f(x: plum.ModuleType("not_imported_module", "Thing")):  # noqa: F821
        return x

    facts = facts_of(plum_freeze.freeze(f))
    errors = " ".join(each.error for each in facts.unresolved)
    assert "NotThere" in errors
    assert "waits for not_imported_module" in errors
    assert f._pending  # nothing was resolved for the report


def test_what_decides_is_said_in_short():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Float[Array, "3"], y: list[int]):
        return x

    facts = facts_of(plum_freeze.report(f))
    assert facts.keys == "type, dtype, shape; not cacheable: 2"
    assert [d.argument for d in facts.decides] == [1, 2]


def test_what_could_not_be_sealed_is_said():
    from plum_freeze import _table

    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    plum_freeze.freeze(f)
    plum_freeze.thaw(f)
    _report.failed[_table.table_of(f)] = "ValueError: no"
    facts = facts_of(plum_freeze.report(f))
    assert facts.failed == "ValueError: no"
    assert "ValueError: no" in str(plum_freeze.report(f))
    plum_freeze.freeze(f)
    assert not facts_of(plum_freeze.report(f)).failed


def test_invalidations_are_counted(frozen):
    f, report = frozen
    before = report.as_dict()["invalidation"]
    with pytest.warns(plum_freeze.InvalidationWarning):

        @f.dispatch
        def f(x: Array, y: int):
            return x

    after = report.as_dict()["invalidation"]
    assert after["moves"] + after["exact"] > before["moves"] + before["exact"]


def test_making_a_report_gathers_nothing(frozen, monkeypatch):
    def gather(*_):
        raise AssertionError

    monkeypatch.setattr(_report, "_facts_of", gather)
    report = plum_freeze.report(frozen[0])
    assert "1 functions, 1 frozen" in repr(report)
    assert len(report) == 1
    with pytest.raises(AssertionError):
        report.as_dict()


# -- how it looks --------------------------------------------------------------------------------


def test_as_dict_is_plain_data(frozen):
    data = frozen[1].as_dict()
    assert json.loads(frozen[1].to_json()) == json.loads(json.dumps(data))
    (function,) = data["functions"]
    assert function["name"].endswith("frozen.<locals>.f")
    assert {m["runs"] for m in function["methods"]} == {"jitted", "plain", "not called yet"}
    assert len(data["registrations"]) >= 7


@pytest.mark.parametrize("width", [80, 160])
def test_print_fits_and_has_no_colour(frozen, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich would colour even a string
    text = str(frozen[1])
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    for words in ("7 methods", "branches on a traced", "Jitted", "on_late='warn'"):
        assert words in text.replace("\n", " ")


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_cut_off(monkeypatch, width):
    dispatch = plum.Dispatcher()

    @dispatch
    def function_with_a_long_name_that_has_to_be_folded(x: Float[Array, "a 3"], y: list[int]):  # noqa: F722
        return x

    monkeypatch.setenv("COLUMNS", str(width))
    text = str(plum_freeze.report(function_with_a_long_name_that_has_to_be_folded))
    assert max(map(len, text.splitlines())) <= width
    for word in ("dtype,", "shape,", "axis", "names", "scope;", "cacheable:", "Decided by", "Late"):
        assert word in text, word


def test_rich_prints_it_in_colour(frozen):
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=100)
    console.print(frozen[1])
    assert "\x1b[" in console.file.getvalue()


def test_a_notebook_gets_html(frozen):
    text = frozen[1]._repr_html_()
    assert text.startswith("<pre")
    assert "&lt;locals&gt;" in text


def test_many_lines_are_cut_and_say_so():
    dispatch = plum.Dispatcher()
    classes = [type(f"K{i}", (), {}) for i in range(_render.MOST_LINES + 3)]
    for cls in classes:

        def f(x):
            return x

        f.__annotations__ = {"x": cls}
        dispatch(f)
    assert "and 3 more" in str(plum_freeze.report(dispatch.functions["f"]))


def test_brief_leaves_what_is_in_quotes():
    assert _render.brief("(x: a.b.Float[jax.Array, 'n.m 3'])") == "(x: Float[Array, 'n.m 3'])"
    assert len(_render.brief("x" * 999)) == _render.LONGEST


def test_an_empty_report():
    report = _report.Report([])
    assert str(report) == "plum_freeze: no dispatched functions."
    assert report
    assert report.as_dict()["functions"] == []


# -- which functions -----------------------------------------------------------------------------


def run(code, tmp_path, **environment):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(code))
    import os

    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_reports_on_all_that_is_frozen_and_rich_comes_late(tmp_path):
    out = run(
        """
        import sys
        import plum_freeze
        assert "rich" not in sys.modules and "jax" not in sys.modules
        import plum
        dispatch = plum.Dispatcher()
        @dispatch
        def f(x: int): return x
        @dispatch
        def g(x: int): return x
        plum_freeze.freeze(f)
        print([x.name for x in plum_freeze.report().facts()])
        print("JAX is not imported" in str(plum_freeze.report()), "jax" in sys.modules)
        """,
        tmp_path,
    )
    assert out.splitlines() == ["['__main__.f']", "True False"]


def test_modules_that_the_hook_did_not_see_are_named(tmp_path):
    package = tmp_path / "unseenpkg"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import unseenpkg.early\nimport plum_freeze\nplum_freeze.install()\nimport unseenpkg.later\n"
    )
    (package / "early.py").write_text("import plum\n@plum.dispatch\ndef f(x: int): return x\n")
    (package / "later.py").write_text("")
    out = run(
        """
        import unseenpkg, plum_freeze
        found = plum_freeze.report("unseenpkg").as_dict()["unseen_modules"]
        print([(x["module"], x["loader"]) for x in found])
        """,
        tmp_path,
    )
    assert "('unseenpkg.early', 'SourceFileLoader')" in out
    assert "later" not in out


def test_off_it_reports_plain_functions(tmp_path):
    out = run(
        """
        import plum, plum_freeze
        @plum.dispatch
        def f(x: int): return x
        plum_freeze.freeze()
        print(plum_freeze.report(f).facts()[0].methods[0].words)
        """,
        tmp_path,
        PLUM_FREEZE="0",
    )
    assert out == "not frozen\n"


def test_the_log_tells_of_freezes_fallbacks_and_compilations(caplog):
    caplog.set_level("DEBUG", logger="plum_freeze")
    dispatch = plum.Dispatcher()

    @dispatch
    def logged(x: Array, y: int):
        return x * y

    @dispatch
    def logged(x: Array, y: str):
        return len(y)

    plum_freeze.freeze(logged)
    for _ in range(2):
        logged(jnp.ones(3), 2)
        logged(jnp.ones(3), "a")
    told = [(r.levelname, r.getMessage()) for r in caplog.records]
    assert any(level == "INFO" and "froze 1 functions" in text for level, text in told)
    assert any(level == "INFO" and "logged runs plainly: returns int" in t for level, t in told)
    assert any(level == "DEBUG" and "logged is compiled, variant 1" in t for level, t in told)
