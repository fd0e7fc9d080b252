"""A type checker sees the right types through every public name: mypy and pyright say so."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plum_freeze

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def needs(tool):
    found = importlib.util.find_spec(tool) is not None
    return pytest.mark.skipif(not found, reason=f"{tool} is not installed: pip install {tool}")


def mypy(file):
    """The lines that mypy finds wrong, with what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(HERE / file)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    found = re.findall(rf"{file}:(\d+): error: (.*)", done.stdout)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line): words for line, words in found}


def pyright(file):
    """The same of pyright."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable,
         str(HERE / file)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if not done.stdout.strip().startswith("{"):
        pytest.skip(f"pyright cannot be run here: {(done.stderr or done.stdout).strip()[-200:]}")
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    }


def marked():
    lines = (HERE / "wrong.py").read_text().splitlines()
    return {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}


@needs("mypy")
def test_mypy_sees_the_types():
    assert mypy("public.py") == {}


@needs("mypy")
def test_mypy_refuses_what_is_wrong():
    assert set(mypy("wrong.py")) == marked()


@needs("pyright")
def test_pyright_sees_the_types():
    assert pyright("public.py") == {}


@needs("pyright")
def test_pyright_refuses_what_is_wrong():
    assert set(pyright("wrong.py")) == marked()


def test_every_public_name_is_in_the_file():
    text = (HERE / "public.py").read_text()
    names = [name for name in vars(plum_freeze) if re.match("[a-zA-Z]", name)]
    names = [name for name in names if not hasattr(getattr(plum_freeze, name), "__path__")]
    missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert len(names) > 15
    assert not missing
