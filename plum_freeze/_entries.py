"""The entries of a sealed table: what plum calls in place of a method that it looked up.

An entry is made for the types of a call. Where the types decide, it resolves once and stores the
method itself; where more decides, it looks a key up at each call; where nothing that can be kept
decides, it has plum resolve each call.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import _asked, _decisions, _dependencies, _invalidation, _keys, _plum, _tracing
from plum_freeze._decisions import Decision
from plum_freeze._jit import Compiled
from plum_freeze._parents import Parents
from plum_freeze._runners import tracer_in

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from plum_freeze._keys import KeyPart
    from plum_freeze._plum import Function, Method
    from plum_freeze._store import Entry
    from plum_freeze._table import Table

Types = tuple[type, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known about calls with arguments of some types.

    Attributes:
        table: The table of the function.
        types: The types of the positional arguments.
        parts: What a decision depends on, for each of them.
        generation: The generation of the table that this is about: under another one nothing that
            was resolved by this plan is stored.
    """

    table: Table
    types: Types
    parts: tuple[KeyPart, ...]
    generation: object


def make(table: Table, types: Types) -> Callable[..., Any]:
    """What plum calls for arguments of these types, from now on."""
    generation = table.generation
    plan = Plan(table, types, table.parts_of(types, generation), generation)
    if not any(plan.parts):
        return _first(plan)
    entry = _keyed(plan) or _uncached(plan)
    table.put(types, entry, generation)
    return entry


def _first(plan: Plan) -> Callable[..., Any]:
    """The types decide: the first call resolves, and stores the method itself."""

    def first(*args: Any, **kwargs: Any) -> Any:
        """Resolve, and run what was found."""
        __tracebackhide__ = True
        return resolve(plan, args, plan.table, plan.types)(*args, **kwargs)

    return first


def _keyed(plan: Plan) -> Callable[..., Any] | None:
    """More than the types decides: dtypes, shapes, values, classes. None if nothing can be kept."""
    runners: dict[Any, Entry] = {}

    def look_up(args: tuple[Any, ...], key: Any) -> Callable[..., Any]:
        __tracebackhide__ = True
        return resolve(plan, args, None if key is _keys.UNCACHED else runners, key)

    return _keys.keyed_entry(plan.parts, tracer_in(plan.types), runners, look_up)


def _uncached(plan: Plan) -> Callable[..., Any]:
    """Plum resolves each call, and the method that it finds runs as fast as it can."""
    table, types = plan.table, plan.types
    choose = _plum.chooser(table.function)
    methods: dict[int, Method] = {}
    runners: dict[int, Entry] = {}

    def uncached(*args: Any, **kwargs: Any) -> Any:
        """Have plum choose, and run what is known of its choice."""
        __tracebackhide__ = True
        # The record has these types since the first call, without a witness: each new method that
        # may apply to them counts as a change.
        method = choose(args) if types in table.decisions else None
        if _dependencies.anywhere:
            table.note(plan.generation, types)
        if methods.get(id(method)) is method is not None:
            return runners[id(method)][0](*args, **kwargs)
        run = resolve(plan, args, None, None)
        if method is not None:
            key, compiled = id(method), table.compiled(method)
            if table.place(
                compiled,
                compiled.runner(types),
                runners,
                key,
                types=types,
                decision=None,  # of these types there is one
                generation=plan.generation,
            ):
                methods[key] = method
        return run(*args, **kwargs)

    return uncached


def resolve(
    plan: Plan, args: tuple[Any, ...], where: dict[Any, Any] | None, key: Any
) -> Callable[..., Any]:
    """Have plum choose the method, take note of it, and keep it under `key` in `where`.

    Raises:
        LookupError: What plum raises where no method applies, or several.
    """
    __tracebackhide__ = True
    table, types = plan.table, plan.types
    generation = table.generation
    method = _own_method(table.function, args)
    found = None if method is None else method.implementation
    record_key: Hashable = types
    witnesses: tuple[Any, ...] = (None,) * len(types)
    if where is not None:  # otherwise other arguments of these types may get another method
        record_key, witnesses = (types, key), tuple(map(_decisions.witness, args, plan.parts))
    decision = table.record(record_key, Decision(types, witnesses, found), generation)
    if method is None:
        return _inherited(plan, args, where, key, decision)
    compiled = table.compiled(method)
    runner = compiled.runner(types, is_watched=where is table)
    if (
        where is not None
        and plan.generation is generation
        and table.place(
            compiled, runner, where, key, types=types, decision=decision, generation=generation
        )
    ):
        for cls in _keys.weak_parts(args, plan.parts):
            # An entry whose key holds the identity of a class goes when the class goes.
            anchor = (id(where), key, id(cls))
            table.anchors[anchor] = weakref.ref(cls, lambda _: where.pop(key, None))
    # The look-up for this very call was a miss, and nobody has told a trace around it.
    bare = compiled.implementation
    return compiled.plain if _tracing.anywhere and runner[0] is bare else runner[0]


def _own_method(function: Function, args: tuple[Any, ...]) -> Method | None:
    try:
        return _plum.choose(function, args)
    except LookupError:
        return None


def _inherited(
    plan: Plan, args: tuple[Any, ...], where: dict[Any, Any] | None, key: Any, decision: Decision
) -> Callable[..., Any]:
    """The method of a parent class, for as long as the parents hold what they hold now."""
    __tracebackhide__ = True
    table = plan.table
    function = table.function
    parents = Parents(function)
    holds = parents.holds
    implementation, return_type = _plum.choose_any(function, args)
    run = Compiled(implementation, return_type, jit=False).plain

    def inherited(*args: Any, **kwargs: Any) -> Any:
        """The parent's method; or the function again, if a parent holds another one now."""
        __tracebackhide__ = True
        if not holds():
            _invalidation.invalidate([parents], blind=False)
            table.clear()
            return function(*args, **kwargs)
        if _dependencies.anywhere:
            _dependencies.note(parents)
            _plum.choose_any(function, args)  # what the parents decide is noted
        if _asked.anywhere:
            _dependencies.bake_everywhere(parents)
        return run(*args, **kwargs)

    if where is not None:
        table.keep(where, key, table.entry((inherited, None), where, decision), plan.generation)
    return inherited
