"""What `report()` returns: how each frozen function and each of its methods runs, and why."""

from __future__ import annotations

import dataclasses
import json
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _dependencies,
    _hook,
    _invalidation,
    _plum,
    _record,
    _table,
    _targets,
    _waiting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plum_freeze._ambiguity import Finding
    from plum_freeze._analysis import Depends
    from plum_freeze._facts import LateFacts, MethodFacts, UnresolvedFacts
    from plum_freeze._plum import Function
    from plum_freeze._table import Table


class _Failures:
    """Why functions could not be sealed. A table is a dict, and so no key of a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[Table], str]] = {}

    def __setitem__(self, table: Table, why: str) -> None:
        key = id(table)
        self._rows[key] = weakref.ref(table, lambda _: self._rows.pop(key, None)), why

    def get(self, table: Table | None) -> str | None:
        reference, why = self._rows.get(id(table), (None, None))
        return why if reference is not None and reference() is table else None


failed = _Failures()


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """One function.

    Attributes:
        name: Module and qualified name.
        module: The module that defines it.
        frozen: Whether it is sealed now.
        where: File and line of the `freeze()`; "" if it is not frozen.
        on_late: What a late registration does; "" if it is not frozen.
        failed: Why it could not be sealed; "" if it could, or was not tried.
        methods: How each method runs.
        decides: What the choice of a method depends on, by argument; nothing where types decide.
        late: Registrations after the freeze.
        unresolved: Registrations whose annotations cannot be resolved yet.
        findings: Ambiguous pairs, methods that are never chosen, hints that cost speed.
        compiled_in: The traced functions that have decisions of it baked in, by file and line.
    """

    name: str
    module: str
    frozen: bool
    where: str
    on_late: str
    failed: str
    methods: list[MethodFacts]
    decides: list[Depends]
    late: list[LateFacts]
    unresolved: list[UnresolvedFacts]
    findings: list[Finding]
    compiled_in: list[str]

    @property
    def jitted(self) -> int:
        """How many methods run compiled, for some of their calls at least."""
        return sum(m.compiled > 0 or m.runs == "jitted by its author" for m in self.methods)

    @property
    def plain(self) -> int:
        """How many methods run plainly, or will."""
        return sum(m.compiled == 0 and bool(m.reasons) for m in self.methods)

    @property
    def keys(self) -> str:
        """What decides, in a word or two."""
        from plum_freeze import _analysis

        return _analysis.in_short(self.decides)


class Report:
    """What is known of some functions. `print` it, or take `as_dict()`.

    Nothing is gathered before it is asked for, and it tells what is so at that moment.
    """

    def __init__(self, functions: list[Function]) -> None:
        self._functions = functions

    def facts(self, done: Callable[[], None] = lambda: None) -> list[FunctionFacts]:
        """What is known of each function; `done` is called after each."""

        def one(function: Function) -> FunctionFacts:
            found = _facts_of(function)
            done()
            return found

        return sorted(map(one, self._functions), key=lambda facts: facts.name)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data: dicts, lists, strings, numbers. JSON can hold it."""
        return plain_data(self.facts(), self._functions)

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON."""
        return json.dumps(self.as_dict(), indent=indent)

    def __len__(self) -> int:
        return len(self._functions)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        frozen = sum(_is_frozen(function) for function in self._functions)
        return f"<plum_freeze report: {len(self)} functions, {frozen} frozen; print() it>"

    def __str__(self) -> str:
        from plum_freeze import _render

        return _render.text(self.facts(), footer(self._functions))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from plum_freeze import _render

        yield from _render.parts(self.facts(), footer(self._functions), options.max_width)

    def _repr_html_(self) -> str:
        from plum_freeze import _render

        return _render.notebook(self.facts(), footer(self._functions))


def report(*targets: Any) -> Report:
    """What is frozen, how each method runs and why, and what could be better.

    Args:
        *targets: Packages, modules or functions, as for `freeze`. Default: the functions of the
            caller's top-level package; from a script, a notebook or the prompt every function that
            is frozen.

    Raises:
        FreezeError: A target is none.
    """
    _waiting.settle()
    if not targets and _targets.package_of(_targets.caller()[0]) == _targets.SCRIPT:
        return Report([function for function in _plum.functions() if _is_frozen(function)])
    return Report(_targets.find(targets, "report"))


def _is_frozen(function: Function) -> bool:
    table = _table.table_of(function)
    return table is not None and table.seal is not None


def _facts_of(function: Function) -> FunctionFacts:
    table = _table.table_of(function)
    seal = None if table is None else table.seal
    # They are large, and every program that imports plum_freeze would pay for them.
    from plum_freeze import _ambiguity, _analysis, _facts

    methods = _facts.methods_of(function)
    return FunctionFacts(
        name=_plum.name_of(function),
        module=_plum.module_of(function),
        frozen=seal is not None,
        where="" if seal is None else seal.where,
        on_late="" if seal is None else seal.on_late,
        failed=(failed.get(table) if seal is None else None) or "",
        methods=_facts.method_facts(function, [*methods.comparable, *methods.others]),
        decides=_analysis.depends(methods.comparable),
        late=_facts.late_facts(function),
        unresolved=methods.unresolved,
        findings=_ambiguity.findings(function, methods.comparable),
        compiled_in=_compiled_in(table),
    )


# -- what belongs to no function -----------------------------------------------------------------


def _compiled_in(table: Table | None) -> list[str]:
    """The traced functions that have decisions of this function baked in."""
    decisions = [] if table is None else list(table.decisions.values())
    return list(dict.fromkeys(map(str, _dependencies.dependents(decisions))))


def unseen_modules(functions: list[Function]) -> list[tuple[str, str]]:
    """Modules of recorded packages whose bodies the hook never saw, each with its loader.

    They were imported before, or another hook made their loader anew. What they registered is in
    the record all the same; only the ends of their bodies went by unnoticed.
    """
    packages = {_targets.package_of(_plum.module_of(function)) for function in functions}
    found = []
    for name, module in list(sys.modules.items()):
        if _targets.package_of(name) not in packages or not _is_tracked(name) or _hook.seen(name):
            continue
        loader = _loader_of(module)
        if loader is not None:
            cls = loader if isinstance(loader, type) else type(loader)
            found.append((name, cls.__qualname__))
    return sorted(found)


def _loader_of(module: Any) -> Any:
    """The loader of a module that came from a file; asks the module for nothing, it may be lazy."""
    try:
        namespace = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None  # something else was put into `sys.modules`
    from_file = namespace.get("__file__") is not None
    return getattr(namespace.get("__spec__"), "loader", None) if from_file else None


def _is_tracked(name: str) -> bool:
    finder = _hook._the_finder
    return finder is not None and finder.tracks(name)


def footer(functions: list[Function]) -> dict[str, Any]:
    """The part of the report that is about no single function."""
    unseen = unseen_modules(functions)
    return {
        "invalidation": _invalidation.facts(),
        "unseen_modules": [{"module": name, "loader": loader} for name, loader in unseen],
    }


def plain_data(facts: list[FunctionFacts], functions: list[Function]) -> dict[str, Any]:
    """All of the report, with nothing in it that JSON cannot hold."""
    identities = {id(function) for function in functions}
    packages = {_targets.package_of(_plum.module_of(function)) for function in functions}
    made = [
        r
        for r in _record.all_of()
        if id(r.function) in identities or _targets.package_of(r.module) in packages
    ]
    found: dict[str, Any] = json.loads(json.dumps([dataclasses.asdict(each) for each in facts]))
    return {
        "functions": found,
        **footer(functions),
        "registrations": [
            {
                "function": _plum.name_of(r.function),
                "defined_in": _plum.module_of(r.function),
                "signature": r.signature,
                "module": r.module,
                "file": r.file,
                "line": r.line,
                "phase": r.phase,
                "order": r.order,
            }
            for r in made
        ],
    }
