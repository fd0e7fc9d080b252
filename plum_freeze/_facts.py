"""What is known of a function, as plain data: each method, how it runs, why, and what to do.

Nothing is called and nothing is resolved for it: annotations are looked at on copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plum_freeze import _compare, _how, _plum, _record, _table

if TYPE_CHECKING:
    from plum_freeze._how import Reason
    from plum_freeze._plum import Entry, Function, Method
    from plum_freeze._table import Table


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """One method of a function.

    Attributes:
        signatures: Its signature, and those that default values or `dispatch.multi` add.
        precedence: The highest precedence among them.
        returns: The return type that its result is converted to; "" without one.
        module: The module that implements it.
        file: The file of its code.
        line: The line there.
        runs: "jitted", "partly jitted", "jitted by its author", "plain", "called once" (each kind
            of call runs plainly first), "not called yet" or "not frozen".
        compiled: How many sets of static values it is compiled for.
        reasons: Why it runs plainly, or will.
    """

    signatures: tuple[str, ...]
    precedence: int
    returns: str
    module: str
    file: str
    line: int
    runs: str
    compiled: int
    reasons: tuple[Reason, ...]

    @property
    def place(self) -> str:
        """Where it is, shortly: `core.py:12`."""
        return f"{Path(self.file).name}:{self.line}"

    @property
    def words(self) -> str:
        """How it runs: `jitted`, `plain: returns int`, `not called yet`."""
        texts = "; ".join(reason.text for reason in self.reasons)
        if self.runs == "called once":
            return "called once: compiled when such a call comes again"
        if not texts:
            return self.runs
        if self.runs == "plain":
            return f"plain: {texts}"
        link = "will run plainly: " if self.runs == "not called yet" else "plain where it "
        if self.runs == "partly jitted":
            return f"jitted; plain: {texts}"
        return f"{self.runs}; {link}{texts}"


@dataclass(frozen=True, slots=True)
class LateFacts:
    """One registration that was made after the freeze."""

    signature: str
    module: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class UnresolvedFacts:
    """One registration whose annotations cannot be resolved yet."""

    signature: str
    error: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Methods:
    """The methods of a function as they will be at the next call.

    Attributes:
        comparable: Those whose hints plum can check and compare.
        others: Those with a hint that it cannot, or not yet.
        unresolved: What is wrong with the others, and with what waits for its resolution in vain.
    """

    comparable: list[Method]
    others: list[Method]
    unresolved: list[UnresolvedFacts]


def methods_of(function: Function) -> Methods:
    """The methods of a function. Nothing is resolved for it: what is pending stays so."""
    found = Methods([], [], [])
    known: dict[int, str] = {}
    found.comparable.extend(_sorted_out(_plum.resolved_methods(function), found, known))
    for entry in _plum.pending_entries(function):
        try:
            new = _plum.methods_of(entry, function.__name__)
        except Exception as error:  # noqa: BLE001  anything can happen in an annotation
            problem = _in_one_line(error)
            found.unresolved.append(_unresolved(_plum.signature_text(entry), problem, entry))
            continue
        good = _sorted_out(new, found, known)
        try:
            found.comparable[:] = _plum.methods_after(found.comparable, good)
        except Exception as error:  # noqa: BLE001  what beartype once raised for two hints, it keeps
            found.others.extend(good)
            problem = _in_one_line(error)
            found.unresolved.append(_unresolved(_plum.signature_text(entry), problem, entry))
    return found


def _sorted_out(methods: list[Method], found: Methods, known: dict[int, str]) -> list[Method]:
    """The methods whose hints can be compared; the others go to `found`."""
    good = []
    for method in methods:
        hints = [*method.signature.types]
        if method.signature.has_varargs:
            hints.append(method.signature.varargs)
        problem = ""
        for hint in hints:
            if id(hint) not in known:
                known[id(hint)] = _problem(hint)
            problem = problem or known[id(hint)]
        waits = [hint for hint in hints if _plum.is_promise(hint)]
        if waits and not problem:
            module = _plum.module_of_promise(waits[0]) or "a promised type"
            problem = f"waits for {module}"
        if problem:
            found.others.append(method)
            found.unresolved.append(_unresolved(_compare.method_text(method), problem, method))
        else:
            good.append(method)
    return good


def _problem(hint: Any) -> str:
    """What plum would raise for this hint, whatever the value; "" if it can be checked."""
    if _plum.waits_for_a_name(hint):
        return "NameError: a class that it refers to is not defined yet"
    try:
        _plum.matches(object(), hint)
    except Exception as error:  # noqa: BLE001  the error is what is asked for
        return _in_one_line(error)
    return ""


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _unresolved(signature: str, problem: str, source: Entry | Method) -> UnresolvedFacts:
    return UnresolvedFacts(signature, problem, *place_of(source.implementation))


def place_of(implementation: Any) -> tuple[str, int]:
    """File and line of a method's own code, under its decorators."""
    seen = 0
    while hasattr(implementation, "__wrapped__") and seen < 32:  # noqa: PLR2004  a cycle ends too
        implementation, seen = implementation.__wrapped__, seen + 1
    code = getattr(implementation, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)


def method_facts(function: Function, methods: list[Method]) -> list[MethodFacts]:
    """How each method runs; those that default values add are with the one they come from."""
    table = _table.table_of(function)
    grouped: dict[int, list[Method]] = {}
    for method in methods:
        grouped.setdefault(id(method.implementation), []).append(method)
    return [_one(table, group) for group in grouped.values()]


def _one(table: Table | None, group: list[Method]) -> MethodFacts:
    first = max(group, key=lambda method: len(method.signature.types))
    others = [method for method in group if method is not first]
    implementation = first.implementation
    runs, compiled, reasons = _how.runs(table, implementation)
    file, line = place_of(implementation)
    return MethodFacts(
        signatures=tuple(_compare.method_text(method) for method in (first, *others)),
        precedence=max(method.signature.precedence for method in group),
        returns="" if first.return_type is Any else _plum.hint_text(first.return_type),
        module=getattr(implementation, "__module__", None) or "<unknown>",
        file=file,
        line=line,
        runs=runs,
        compiled=compiled,
        reasons=tuple(reasons),
    )


def late_facts(function: Function) -> list[LateFacts]:
    """What was registered after the freeze."""
    return [
        LateFacts(r.signature, r.module, r.file, r.line)
        for r in _record.all_of({id(function)})
        if r.phase == "late"
    ]
