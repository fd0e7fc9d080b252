"""What nobody tells of and nobody sees where it is baked in: jitted functions ask at each call."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import pytest
from exact import leaves
from exact.__main__ import PARTS

import plum_freeze
from plum_freeze import _asked, _dependencies, _invalidation, _parents, _watch
from plum_freeze._dependencies import Baked
from plum_freeze._epoch import epoch

CALLS = max(400, int(os.environ.get("PLUM_FREEZE_CALLS", "400")) // 10)
FRESH = random.SystemRandom().randrange(1, 2**31)
X = jnp.asarray([1.0, 2.0])


@pytest.fixture(autouse=True)
def nothing_asked():
    _watch.watch_everything()
    jnp.ones(1).block_until_ready()
    _invalidation.why_not()
    epoch.move()
    yield
    epoch.move()  # nor in the tests that follow


def by_epoch(*words):
    """Random programs in a process where everything is compiled again at each change."""
    return subprocess.run(
        [sys.executable, "-m", "exact", *map(str, words)],
        env=os.environ | {"PLUM_FREEZE_INVALIDATION": "epoch"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("seed", [20261202, FRESH], ids=["fixed", "fresh"])
def test_random_programs_with_assignments(seed, capsys):
    found = by_epoch(seed, CALLS // 2)
    assert found.returncode == 0, found.stderr
    with capsys.disabled():
        print(f"\nassignments, by epoch: seed {seed}: {found.stdout.strip()}")


@pytest.mark.parametrize("part", PARTS)
def test_without_any_one_part_something_is_stale(part):
    assert "Stale" in by_epoch(7, 3000, part).stderr


@pytest.mark.parametrize("kind", leaves.UNTOLD)
def test_in_a_rule_a_change_is_seen_at_the_next_call(kind):
    leaf = kind(random.Random(1))
    custom = jax.custom_vjp(lambda x: x)
    custom.defvjp(lambda x: (x, None), lambda _, cotangent: (leaf(cotangent),))
    call = jax.jit(jax.grad(lambda x: custom(x).sum()))
    for factor in (2.0, 4.0, 1.0):
        leaf.change(factor)
        assert call(X)[0] == call(X)[0] == factor
    assert _asked.count() == 1


def test_without_any_jitted_functions_have_their_fast_path(monkeypatch):
    asked = []
    monkeypatch.setattr(_asked, "ask", lambda: asked.append(None))
    monkeypatch.setattr(_asked, "_asked", {})
    call = jax.jit(lambda x: x + 1)
    call(X), call(X), call(X)
    assert asked == []


PAYS = """
import random, sys, types
import jax, jax.numpy as jnp, wrapt
from plum_freeze import _invalidation, _watch
_watch.watch_everything()
from exact import leaves
from jax._src import api, api_util, pjit

# JAX has modules that are imported late, or never, and take it by name
late = sys.modules["jax.late"] = types.ModuleType("jax.late")
late.debug_info = api_util.debug_info

def ours():
    # what a call meets that JAX's fast path does not take
    of_late, *of_others = [isinstance(m.debug_info, wrapt.FunctionWrapper) for m in (late, api_util, api)]
    assert of_others == [of_late] * 2
    names = ((late, "debug_info"), (pjit, "_get_fastpath_data"), (pjit, "_run_python_pjit"))
    return [isinstance(getattr(module, name, None), wrapt.FunctionWrapper) for module, name in names]

told, untold = leaves.OfArray(random.Random(1)), leaves.Assigned(random.Random(1))
jax.jit(told)(jnp.ones(2))
assert ours() == [False] * 3, ours()
jax.jit(untold)(jnp.ones(2))
is_exact = not _invalidation.why_not()
assert ours() == [not is_exact, not is_exact, is_exact], ours()
custom = jax.custom_vjp(lambda x: x)
custom.defvjp(lambda x: (x, None), lambda _, cotangent: (untold(cotangent),))
jax.jit(jax.grad(lambda x: custom(x).sum()))(jnp.ones(2))
assert ours() == [True, True, is_exact], ours()
"""


@pytest.mark.parametrize("way", [{}, {"PLUM_FREEZE_INVALIDATION": "epoch"}], ids=["best", "epoch"])
def test_calls_off_the_fast_path_pay_once_there_is_something_to_ask(way):
    done = subprocess.run(
        [sys.executable, "-c", PAYS],
        env=os.environ | way,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


class Number(Baked):
    """Holds as long as a number is even; of one subject."""

    is_told = False
    number = 0
    subject = "number"

    def holds(self):
        return self.number % 2 == 0


def test_equal_decisions_are_asked_once_and_the_first_of_them(monkeypatch):
    first, second = Number(), Number()
    _asked.add(first)
    _asked.add(second)
    assert _asked.count() == 1
    moves = epoch.moves
    second.number = 1
    _asked.ask()
    assert epoch.moves == moves
    first.number = 1
    _asked.ask()
    assert epoch.moves == moves + 1
    _asked.ask()
    assert (epoch.moves, _asked.count()) == (moves + 1, 0), "what is older is in no trace"


def test_one_that_is_baked_in_again_after_a_change_moves_the_epoch():
    """The second may hold, but there are traces with the first."""
    first, second = Number(), Number()
    _asked.add(first)
    first.number, moves = 1, epoch.moves
    _asked.add(second)
    assert epoch.moves == moves + 1


def test_one_that_has_changed_when_it_is_baked_in_moves_the_epoch_once():
    decision, moves = Number(), epoch.moves
    decision.number = 1
    _dependencies.bake_everywhere(decision)
    assert epoch.moves == moves + 1


def test_one_that_is_everywhere_is_asked_again_after_the_epoch_has_moved():
    decision = Number()
    _dependencies.bake_everywhere(decision)
    epoch.move()
    assert _asked.count() == 0
    _dependencies.collect(lambda: _dependencies.note(decision), (), {})
    assert _asked.count() == 1


def test_parents_of_one_class_and_name_are_one_subject():
    leaf = leaves.Inherited(random.Random(1))
    function = leaf.function
    one, another = _parents.Parents(function), _parents.Parents(function)
    assert one.subject == another.subject
    assert one.subject != _parents.Parents(leaves.Inherited(random.Random(1)).function).subject


def test_the_report_says_that_each_call_asks():
    leaf = leaves.Inherited(random.Random(1))
    assert "asks whether" not in str(plum_freeze.report(leaf.function))
    _asked.add(Number())
    text = " ".join(str(plum_freeze.report(leaf.function)).split())
    assert "asks whether 1 inherited method still holds" in text
    assert plum_freeze.report(leaf.function).as_dict()["invalidation"]["asked"] == 1
