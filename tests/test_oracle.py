"""One program, plain and frozen, always the same answer.

    PLUM_FREEZE_STEPS=20000 python -m pytest tests/test_oracle.py

takes that many steps: half from a fixed seed, half from a fresh one, which is printed.
`PLUM_FREEZE_SEED=...` sets the fresh one, to see a failure again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import jax.numpy as jnp
import numpy as np
import plum
import pytest
from oracle import duel, library, machine
from oracle.compare import Outcome, describe, difference, outcome, same
from oracle.control import Seal
from oracle.found import PROGRAMS
from oracle.machine import FIXED
from oracle.steps import Call, Register, Rule
from oracle.world import World

STEPS = int(os.environ.get("PLUM_FREEZE_STEPS", "2000"))
FRESH = int(os.environ.get("PLUM_FREEZE_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)


@pytest.fixture
def totals(capsys):
    """Print what a test counted, on the terminal."""
    before = duel.counts.copy()
    yield
    counted = {k: duel.counts[k] - before[k] for k in duel.counts}
    with capsys.disabled():
        print("\noracle: " + ", ".join(f"{n} {k}" for k, n in counted.items() if n))


def _attack(seed, steps, capsys):
    with capsys.disabled():
        print(f"\noracle: seed {seed}")
    machine.attack(library.Real(), steps, seed)


def test_frozen_is_plain_from_a_fixed_seed(totals, capsys):
    _attack(FIXED, STEPS // 2, capsys)


def test_frozen_is_plain_from_a_fresh_seed(totals, capsys):
    _attack(FRESH, STEPS - STEPS // 2, capsys)


@pytest.mark.parametrize("name", PROGRAMS)
def test_frozen_is_plain_in_a_program_that_was_found(name):
    on_late, program = PROGRAMS[name]
    real = library.Real()
    with real.install("oracle_worlds"):
        duel.run(program, real, on_late)


def test_plain_is_plain():
    """What differs between two plain worlds would be a mistake of the harness."""
    machine.attack(library.Plain(), 400, FIXED)


def test_callers_that_nobody_invalidates_are_caught():
    """In a process where plum_freeze watches nothing: where it does, they are not stale."""
    code = f"""
from oracle import duel, library, machine
try:
    machine.attack(library.Library(), 3000, {FIXED}, shorten=False)
except duel.Difference as difference:
    print("caught", difference)
"""
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.startswith("caught"), done.stdout + done.stderr
    assert "from a caller made once" in done.stdout


def test_a_naive_freezer_is_caught():
    with pytest.raises(duel.Difference, match="wanted"):
        machine.attack(library.Naive(), 1000, FIXED, shorten=False)


def test_a_program_that_differs_is_shortened():
    method, seal, call = (
        Register(0, (("object", ""),), "return {n}"),
        Seal("freeze", (0, 1)),
        Call(0, ("1",)),
    )
    other = [Register(1, (("object", ""),), "return x * 2"), Call(1, ("v",), (), "jit")]
    shorter, text = duel.shortened(
        [*other, method, other[1], seal, other[1], call, other[1]], library.Naive(), "accept"
    )
    assert shorter == [method, seal, call]
    assert "wanted: " in text
    assert "def f0(x: object)" in duel.printed(shorter)
    names = vars(sys.modules["oracle.steps"]) | vars(sys.modules["oracle.control"])
    assert eval(duel.as_data(shorter), names) == shorter


V = np.array([1.0, 2.0])
DIFFERENT = [
    (1, True),
    (1, 1.0),
    (1, jnp.asarray(1)),
    (0.0, -0.0),
    (float("nan"), 0.0),
    ([1], (1,)),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("1", 1),
    (jnp.asarray(2.0), jnp.float32(2)),  # weak
    (jnp.asarray(0.0), jnp.asarray(-0.0)),
    (jnp.ones(2, "int8"), jnp.ones(2, "int16")),
    (jnp.ones(2), jnp.ones((2, 1))),
    (jnp.ones(2), np.ones(2, np.float32)),
    (np.float64(1), 1.0),
    (V, V.astype("f4")),
    (int, bool),
    (None, ()),
]


@pytest.mark.parametrize("pair", DIFFERENT, ids=[f"{i}" for i in range(len(DIFFERENT))])
def test_what_the_contract_promises_is_compared(pair):
    a, b = (Outcome("returned", describe(v)) for v in pair)
    assert same(a, a)
    assert not same(a, b)
    assert "wanted" in difference(a, b)


def _raise(error):
    raise error


def test_exceptions_are_compared():
    said = [
        outcome(lambda e=e: _raise(e))
        for e in (KeyError("a"), KeyError("b"), LookupError("a"), KeyError("a"))
    ]
    assert same(said[0], said[3])
    assert not same(said[0], said[1])
    assert not same(said[0], said[2])
    assert not same(said[0], Outcome("returned", describe(None)))


def test_an_address_and_the_name_of_a_world_are_not_compared():
    worlds = [World("one", None), World("two", None)]
    try:
        said = []
        for world in worlds:
            Register(0, (("A", ""),), "return B(x)").run(world, 0)
            said += [
                outcome(lambda w=world, a=a: w.function(0)(w.evaluate(a)))
                for a in ("A(1)", "D(1)", "len")
            ]
    finally:
        for world in worlds:
            world.close()
    assert [s.kind for s in said[:3]] == ["returned", "raised", "raised"]
    assert all(same(a, b) for a, b in zip(said[:3], said[3:], strict=True))


def test_a_world_leaves_nothing_in_plum():
    functions, rules = len(plum.Function._instances), len(plum._promotion._convert.methods)
    program = [Register(0, (("A", ""),), "return x"), Call(0, ("a0",))]
    duel.run([*program, Rule("conversion", "A", "D")], library.Plain())
    assert len(plum.Function._instances) == functions
    assert len(plum._promotion._convert.methods) == rules
    assert not [m for m in sys.modules if m.startswith("oracle_worlds")]
