"""The README's code runs, and prints what the README says; so do the examples."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jax._src.interpreters import partial_eval

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
# A block of code, the words after its language, and the block of output that may follow it.
BLOCKS = re.findall(r"^```python( notest)?\n(.*?)^```\n(?:\n^```\n(.*?)^```\n)?", README, re.M | re.S)


def run(path):
    done = subprocess.run(
        [sys.executable, str(path)],
        env=os.environ | {"JAX_PLATFORMS": "cpu", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def normalised(text):
    """Without the folder of this checkout, and with numbers that are times left out."""
    return text.replace(str(ROOT) + "/", "")


def test_there_is_code_in_the_readme():
    assert sum(not notest for notest, _, _ in BLOCKS) >= 1


@pytest.mark.parametrize(("code", "output"), [(c, o) for notest, c, o in BLOCKS if not notest])
def test_code(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == output


def test_the_quickstart_prints_what_the_readme_says():
    printed = normalised(run(ROOT / "examples" / "quickstart.py"))
    story, timing = printed.split("\none call ")
    shown = re.search(r"<!-- output of examples/quickstart.py -->\n```\n(.*?)```", README, re.S).group(1)
    if not hasattr(partial_eval, "trace_to_jaxpr"):  # JAX 0.7.2 has everything compiled again
        shown, story = (re.sub(r"(retraces?: ).*", r"\1everything", t) for t in (shown, story))
    assert shown.strip() == story.strip()
    rows = re.findall(r"^  (.+?)  +[\d.]+ +([\d.]+)$", timing, re.M)
    assert [name for name, _ in rows] == [
        "hand-jitted function", "frozen dispatch", "jax.jit over dispatch", "plain dispatch",
    ]  # fmt: skip


def test_fieldlib():
    printed = run(ROOT / "examples" / "fieldlib" / "use.py")
    assert "energy of the wave     10.5711, with its new norm" in printed
    assert "energy of the field    22.8035, as before" in printed
    assert "(1 warning)" in printed
    assert "fieldlib" in printed.split("as before")[1]


@pytest.mark.parametrize("name", ["install", "freeze", "thaw", "thawed", "is_frozen", "registrations",
                                  "report", "eager", "traced", "Cache"])
def test_every_public_function_is_named(name):
    import plum_freeze

    assert hasattr(plum_freeze, name)
    assert f"`{name}" in README or f"@{name}" in README
