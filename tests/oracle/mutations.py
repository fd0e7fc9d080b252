"""Deliberately broken builds of plum_freeze: each takes one safeguard out.

    python -m oracle.mutations NAME STEPS SEED

attacks one of them, and prints after how many steps it was caught, or that it was not. It is run in
a process of its own, so that what is broken breaks nothing else.
"""

from __future__ import annotations

import sys

import pytest

from plum_freeze import (
    _apart,
    _convert,
    _decisions,
    _entries,
    _guard,
    _invalidation,
    _jax,
    _key_function,
    _plum,
    _result,
    _seam,
    _static,
    _table,
    _world,
)
from plum_freeze._keys import KeyPart

from . import duel, library, machine


def nothing_is_invalidated(patch):
    patch.setattr(_invalidation, "invalidate", lambda decisions, *, blind: None)


def the_seam_evicts_nothing(patch):
    patch.setattr(_seam, "invalidate", lambda decisions: True)


def epoch_never_moves(patch):
    patch.setattr(_jax.Epoch, "move", lambda self: None)


def cache_is_not_cleared(patch):
    def clear(self):
        self.generation = object()

    patch.setattr(_table.Table, "clear", clear)


def registration_changes_no_decision(patch):
    patch.setattr(_decisions.Decision, "changes", lambda self, methods, new: False)


def key_without_dtype(patch):
    patch.setitem(_key_function._EXPRESSIONS, KeyPart.AVAL, "{argument}.aval.shape")


def key_without_shape(patch):
    patch.setitem(_key_function._EXPRESSIONS, KeyPart.AVAL, "{argument}.aval.dtype")


def key_without_the_class(patch):
    patch.setitem(_key_function._EXPRESSIONS, KeyPart.IDENTITY, "0")


def static_one_is_true(patch):
    for cls in (int, bool, float):
        patch.setitem(_static.HANDLERS, cls, lambda value: value)


def static_zero_has_no_sign(patch):
    patch.setitem(_static.HANDLERS, float, lambda value: (float, value))


def pytrees_have_no_auxiliary_data(patch):
    patch.setattr(_apart, "auxiliary_key", lambda value, auxiliary: None)


def promises_are_not_kept(patch):
    patch.setattr(_world, "_keep", lambda table, promise: None)


def parents_are_not_watched(patch):
    patch.setattr(_plum, "parents_holding", lambda function: [])


def virtual_subclasses_are_ignored(patch):
    patch.setattr(_world, "virtual_subclass", lambda cls: None)
    patch.setattr(_world, "check_token", lambda: None)
    patch.setattr(_table, "before_miss", lambda table: None)


def conversions_are_never_forgotten(patch):
    patch.setattr(_convert.Conversion, "forget", lambda self: None)


def failed_lookups_are_remembered(patch):
    real = _entries.resolve

    def resolve(plan, args, where, key):
        try:
            return real(plan, args, where, key)
        except LookupError as error:
            remembered = error

            def fail(*args, **kwargs):
                raise remembered

            if where is not None:
                dict.__setitem__(where, key, (fail, object) if where is plan.table else fail)
            raise

    patch.setattr(_entries, "resolve", resolve)


def globals_are_read_once(patch):
    real = _guard.make_guard

    def make_guard(reads, home):
        made = real(reads, home)
        return _guard.Guard(made.reads, lambda: False, lambda: False)

    for module in (
        _guard,
        *(sys.modules[name] for name in ("plum_freeze._screen", "plum_freeze._reads")),
    ):
        if hasattr(module, "make_guard"):
            patch.setattr(module, "make_guard", make_guard)


def results_may_be_anything(patch):
    def checked(result, args, kwargs):
        return result, False

    patch.setattr(_result, "checked", checked)


def dicts_are_sorted(patch):
    def made(self, value, *, inside_node):
        return {key: self.through(v, inside_node=inside_node) for key, v in value.items()}

    patch.setattr(_result._Walk, "_dict", made)


def types_alone_decide(patch):
    patch.setattr(_table.Table, "parts_of", lambda self, types, _: (KeyPart.TYPE,) * len(types))


MUTATIONS = {
    made.__name__: made
    for made in (
        nothing_is_invalidated,
        the_seam_evicts_nothing,
        epoch_never_moves,
        cache_is_not_cleared,
        registration_changes_no_decision,
        key_without_dtype,
        key_without_shape,
        key_without_the_class,
        static_one_is_true,
        static_zero_has_no_sign,
        pytrees_have_no_auxiliary_data,
        virtual_subclasses_are_ignored,
        promises_are_not_kept,
        parents_are_not_watched,
        conversions_are_never_forgotten,
        failed_lookups_are_remembered,
        globals_are_read_once,
        results_may_be_anything,
        dicts_are_sorted,
        types_alone_decide,
    )
}


def main(name: str, steps: int, seed: int) -> str:
    """Attack a broken build, or with the name "none" the one there is."""
    _key_function._compiled.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        if name != "none":
            MUTATIONS[name](patch)
        try:
            machine.attack(library.Real(), steps, seed, shorten=False)
        except duel.Difference as error:
            return f"caught after {duel.counts['steps']} steps: {error}"
    return f"not caught in {duel.counts['steps']} steps"


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
