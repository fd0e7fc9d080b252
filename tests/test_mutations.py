"""A deliberately broken build is caught by the stateful test: a test of the test.

Each mutation in `oracle/mutations.py` takes one safeguard out of plum_freeze. The stateful test must
then find a program in which frozen and plain differ, within the steps that CI takes anyway, from
the seed from which the sound build is shown to have none (in `test_oracle.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import pytest
from oracle.machine import FIXED
from oracle.mutations import MUTATIONS

TESTS = Path(__file__).parent
BUDGET = 10_000  # half of what CI takes


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_build_is_caught(name, capsys):
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "oracle.mutations", name, str(BUDGET), str(FIXED)],
        # The epoch is little used where invalidation is exact.
        env={**os.environ, "PYTHONPATH": paths}
        | ({"PLUM_FREEZE_INVALIDATION": "epoch"} if name == "epoch_never_moves" else {}),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with capsys.disabled():
        print(f"\noracle: {name}: {done.stdout.partition(':')[0]}")
    assert done.stdout.startswith("caught"), done.stdout


def test_there_are_enough_of_them():
    assert len(MUTATIONS) >= 6
