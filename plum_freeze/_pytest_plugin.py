"""The pytest plugin: run a test suite with its package frozen.

    pytest --plum-freeze=mypkg

It does nothing without that option, and imports neither plum nor JAX. With it the functions are
frozen once the tests are collected; a section of the summary names what was registered late, and by
which test; and each test starts with the methods that it found: what a test registers, itself or by
a fixture of its own, is taken back after it. Modules that it imports keep what they register.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

import plum_freeze
from plum_freeze import _isolation, _plum, _policy, _record, _table, _targets, _watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plum_freeze._origin import Origin
    from plum_freeze._plum import Entry, Function

OFF = "PLUM_FREEZE=0 is set: nothing was frozen"
NOT_FROZEN = "nothing was frozen: the tests were not run"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("plum_freeze", "freeze plum's dispatched functions")
    group.addoption(
        "--plum-freeze",
        metavar="PACKAGE[,...]",
        help="freeze the dispatched functions of these packages once the tests are collected;"
        " '*' for all functions but plum's own",
    )
    group.addoption(
        "--plum-freeze-on-late",
        choices=_policy.POLICIES,
        default="accept",
        help="what a late registration does: be accepted (default) and named in the summary, give"
        " a warning as well, or raise",
    )
    group.addoption(
        "--plum-freeze-verify",
        action="store_true",
        help="run each newly compiled call plainly as well, and compare",
    )
    group.addoption("--plum-freeze-no-jit", action="store_true", help="seal, but do not jit")


def pytest_configure(config: pytest.Config) -> None:
    """Stay out of the way, unless asked for."""
    if not config.getoption("plum_freeze"):
        return
    config.pluginmanager.register(Frozen(config), "plum_freeze_frozen")


@pytest.fixture
def thawed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Thaw what --plum-freeze froze, for a test that registers methods; else it does nothing."""
    plugin = request.config.pluginmanager.get_plugin("plum_freeze_frozen")
    with contextlib.ExitStack() as stack:
        if plugin is not None and plugin.functions:
            stack.enter_context(plum_freeze.thawed(*plugin.functions))
        yield


class Frozen:
    """What a run with --plum-freeze does."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._targets = tuple(
            each.strip() for each in config.getoption("plum_freeze").split(",") if each.strip()
        )
        self.functions: list[Any] = []
        self._said = OFF if _watch.is_off() else NOT_FROZEN
        # node id -> what that test registered late, as text
        self._late: dict[str, list[str]] = {}
        self._node = "outside of a test"
        self._isolation = _isolation.Isolation()
        if not _watch.is_off():
            _record.listeners.append(self._registered)

    def _registered(self, function: Function, entry: Entry, origin: Origin, phase: str) -> None:
        if phase == "late":
            signature = _plum.signature_text(entry)
            place = f"{origin.file}:{origin.line}"
            self._note(f"{_plum.name_of(function)}{signature}  at {place}")
        self._isolation.registered(function, entry, origin)

    def _note(self, text: str) -> None:
        found = self._late.setdefault(self._node, [])
        if text not in found:
            found.append(text)

    # -- freezing --------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Freeze.

        Raises:
            pytest.UsageError: A package cannot be imported, or has no dispatched function.
        """
        config = self._config
        if _watch.is_off() or config.option.collectonly or session.testsfailed:
            return
        for name in self._targets:
            if name != "*" and name not in sys.modules:
                try:
                    importlib.import_module(name)
                except ImportError as error:
                    raise pytest.UsageError(f"--plum-freeze={name}: {error}") from error
        try:
            self._freeze()
        except plum_freeze.FreezeError as error:
            raise pytest.UsageError(f"--plum-freeze: {error}") from None

    def _freeze(self) -> None:
        option = self._config.option
        functions = _targets.find(self._targets, "--plum-freeze")
        for function in functions:
            if plum_freeze.is_frozen(function):  # by its package: the command line decides now
                plum_freeze.thaw(function)
        plum_freeze.freeze(
            *self._targets,
            jit=not option.plum_freeze_no_jit,
            on_late=option.plum_freeze_on_late,
            verify=option.plum_freeze_verify,
        )
        self.functions = functions
        where = f"the command line of pytest (--plum-freeze={','.join(self._targets)})"
        for function in functions:
            table = _table.table_of(function)
            if table is not None and table.seal is not None:
                table.seal = dataclasses.replace(table.seal, where=where)
        details = [f"on_late={option.plum_freeze_on_late!r}"]
        details += ["not jitted"] if option.plum_freeze_no_jit else []
        details += ["verified"] if option.plum_freeze_verify else []
        targets = ", ".join(self._targets)
        self._said = f"froze {len(functions)} functions of {targets} ({', '.join(details)})"

    def pytest_unconfigure(self) -> None:
        """Leave a process that goes on, as that of a nested run, as it was."""
        if self._registered in _record.listeners:
            _record.listeners.remove(self._registered)
        for function in self.functions:
            if plum_freeze.is_frozen(function):
                plum_freeze.thaw(function)

    # -- around each test ------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """What the test registers is taken back after it.

        An item of a document whose examples build on one another (sybil) is no test by itself.
        """
        __tracebackhide__ = True
        self._node = item.nodeid
        self._isolation.start()
        try:
            return (yield)
        finally:
            self._isolation.end(take_back=isinstance(item, (pytest.Function, pytest.DoctestItem)))
            self._node = "outside of a test"

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """What a fixture of a class, module or session registers is there for other tests too."""
        __tracebackhide__ = True
        if fixturedef.scope == "function":
            return (yield)
        with self._isolation.keeping():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        """Who tidies up knows better what was there."""
        __tracebackhide__ = True
        with self._isolation.keeping():
            return (yield)

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        """A registration that was refused is late as well."""
        error = call.excinfo and call.excinfo.value
        if isinstance(error, plum_freeze.LateRegistrationError):
            self._note(f"{error.function}{error.signature}  at {error.where}, refused")

    # -- the summary -----------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the late registrations."""
        terminalreporter.section("plum_freeze")
        terminalreporter.line(self._said)
        count = sum(map(len, self._late.values()))
        if not count:
            return
        noun = "registration" if count == 1 else "registrations"
        terminalreporter.line(f"{count} late {noun}:")
        for node, texts in self._late.items():
            terminalreporter.line(f"  {node}")
            for text in texts:
                terminalreporter.line(f"    {text}")

    # -- pytest-xdist ----------------------------------------------------------------------------

    def pytest_sessionfinish(self) -> None:
        """In a worker: hand over what the summary needs."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["plum_freeze"] = self._said, self._late

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """In the main process: take it. A worker that crashed has nothing to say."""
        said, late = getattr(node, "workeroutput", {}).get("plum_freeze", (None, {}))
        self._said = said or self._said
        self._late.update(late)
