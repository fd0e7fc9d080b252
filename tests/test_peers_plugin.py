"""The plugin that freezes the suites of other packages (`tests/peers/plugin`), on a suite of two tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "peers/plugin"

SUITE = """
import plum

@plum.dispatch
def f(x: int):
    return 1

def test_a_call():
    assert f(3) == 1
    assert f(4) == 1

def test_a_late_method():
    @plum.dispatch
    def f(x: str):
        return 2

    assert f("a") == 2
"""


@pytest.mark.parametrize("when", ["collected", "called"])
@pytest.mark.parametrize("mode", ["dispatch", "jit", "counts"])
def test_a_suite_passes_and_its_facts_are_written(tmp_path, mode, when):
    done, facts = run(tmp_path, mode, when)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (facts["functions"], facts["methods"]) == (1, 2)
    assert [each.split(" by ")[0].split(".")[-1] for each in facts["late"]] == ["f(x: str)"]
    if mode == "counts":
        assert facts["counts"]["calls"] == 3
        assert facts["decisions"]["samples"] == 2


@pytest.mark.parametrize("when", ["collected", "called"])
def test_raise_refuses_the_late_method(tmp_path, when):
    done, _ = run(tmp_path, "raise", when)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "LateRegistrationError" in done.stdout


def run(folder: Path, mode: str, when: str):
    (folder / "test_two.py").write_text(SUITE)
    facts = folder / "facts.json"
    environment = dict(os.environ) | {
        "PYTHONPATH": str(PLUGIN),
        "PEERS_MODE": mode,
        "PEERS_FREEZE": when,
        "PEERS_FACTS": str(facts),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:plum_freeze"]
    done = subprocess.run(
        [*command, "-p", "plum_freeze_peers"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, json.loads(facts.read_text())
