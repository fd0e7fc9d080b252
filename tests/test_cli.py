"""The command line, run as people run it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plum_freeze import _cli

ROOT = str(Path(__file__).parent.parent)

FILES = {
    "clipkg/__init__.py": "from clipkg import core, more\nprint('noise from the package')\n",
    "clipkg/core.py": """
from plum import Dispatcher
from typing import Any
dispatch = Dispatcher()
class A: pass
@dispatch
def f(x: A, y: Any): return 1
@dispatch
def f(x: Any, y: A): return 2
@dispatch
def f(x: list[int], y: int): return 3
@dispatch
def g(x: int): return 1
""",
    "clipkg/more.py": """
from clipkg.core import g, dispatch
@dispatch
def g(x: int): return 2
@dispatch
def g(x: str):
    print(x)
    return x
""",
    "clean/__init__.py": "import plum\n@plum.dispatch\ndef f(x: int): return x\n",
    "nothing/__init__.py": "",
    "broken/__init__.py": "import broken.deep\n",
    "broken/deep.py": "\n\n1 / 0\n",
    "needs/__init__.py": "import a_module_that_is_not_there\n",
    "leaves/__init__.py": "import sys\nsys.exit(3)\n",
    "selfish/__init__.py": """
import plum_freeze
plum_freeze.install()
from selfish import core
plum_freeze.freeze(on_late="warn")
import warnings
warnings.simplefilter("ignore")
from selfish import late
""",
    "selfish/core.py": "import plum\n@plum.dispatch\ndef f(x: int): return x\n",
    "selfish/late.py": "from selfish.core import f\n@f.dispatch\ndef f(x: str): return x\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    for name, text in FILES.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    return path


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "plum_freeze", *arguments], capture_output=True, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": ROOT} | environment,
    )  # fmt: skip


def test_it_prints_the_report(folder):
    done = run(folder, "clipkg", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    for pattern in (
        r"^Imported clipkg in \d+\.\d\d s\.",
        r"2 functions, 2 frozen; 5 methods",
        r"Frozen at the command line",
        r"Ambiguous: .*\n.*f .*\(x: A, y: Any\) and \(x: Any, y: A\)",
        r"for example f\(clipkg\.core\.A,\s+clipkg\.core\.A\)",
        r"Never chosen",
        r"list\[int\] looks inside each value: write list",
        r"will run plainly: calls print",
    ):
        assert re.search(pattern, done.stdout, re.MULTILINE), pattern
    assert "\x1b" not in done.stdout
    assert "noise" not in done.stdout  # what the package prints goes to stderr
    assert "noise" in done.stderr


def test_json_is_json_and_has_the_time(folder):
    data = json.loads(run(folder, "clipkg", "--json", "--plain-import-time").stdout)
    assert {each["name"] for each in data["functions"]} == {"clipkg.core.f", "clipkg.core.g"}
    assert data["import"]["packages"] == ["clipkg"]
    assert data["import"]["seconds"] > 0
    assert data["import"]["plain_seconds"] > 0
    modules = [row[0] for row in data["timeline"]]
    assert modules == ["clipkg", "clipkg.core", "clipkg.more"]
    assert [row[3] for row in data["timeline"]] == [0, 1, 1]
    rows = {(r["module"], r["function"]) for r in data["registrations"]}
    assert ("clipkg.more", "clipkg.core.g") in rows


@pytest.mark.parametrize(
    ("package", "kinds", "code", "words"),
    [
        ("clipkg", "ambiguous", 1, "1 ambiguous"),
        ("clipkg", "unreachable,slow", 1, "1 unreachable, 1 slow"),
        ("clipkg", "late", 0, ""),
        ("clean", "ambiguous,unreachable,late,slow", 0, ""),
        ("selfish", "late", 1, "1 late"),
    ],
)
def test_fail_on(folder, package, kinds, code, words):
    done = run(folder, package, "--fail-on", kinds)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_fail_on_knows_its_kinds(folder):
    done = run(folder, "clean", "--fail-on", "ambiguous,typo")
    assert done.returncode == 2
    assert "typo is none of ambiguous, unreachable, late, slow" in done.stderr


@pytest.mark.parametrize(
    ("package", "pattern"),
    [
        ("not_there", r"there is no module 'not_there' here"),
        ("plumm", r"no module 'plumm' here; did you mean 'plum'\?"),
        ("clipkg.nope", r"there is no module 'clipkg.nope' here"),
        ("./clipkg", r"'./clipkg' is no name of a package"),
        ("broken", r"importing 'broken' failed: ZeroDivisionError: .*deep\.py:3\)"),
        ("needs", r"importing 'needs' failed: ModuleNotFoundError: .*a_module_that_is_not_there"),
        ("leaves", r"importing 'leaves' failed: SystemExit: 3"),
        ("nothing", r"no module of nothing defines a dispatched function"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(folder, package, pattern):
    done = run(folder, package)
    assert done.returncode == 2
    assert re.search("^plum-freeze: .*" + pattern, done.stderr, re.MULTILINE), done.stderr
    lines = [line for line in done.stderr.splitlines() if "noise" not in line]
    assert len(lines) == 1
    assert done.stdout == ""


def test_the_traceback_is_shown_when_asked_for(folder):
    done = run(folder, "broken", "--traceback")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "deep.py" in done.stderr


def test_html_is_written_and_a_bad_place_is_said(folder):
    done = run(folder, "clipkg", "--html", "out.html")
    assert done.returncode == 0
    assert (folder / "out.html").read_text().startswith("<!DOCTYPE html>")
    done = run(folder, "clipkg", "--html", "no/such/folder/out.html")
    assert done.returncode == 2
    assert "cannot write no/such/folder/out.html: No such file" in done.stderr


def test_no_jit_and_the_policy_reach_the_freeze(folder):
    data = json.loads(run(folder, "clipkg", "--json", "--no-jit", "--on-late", "raise").stdout)
    assert {f["on_late"] for f in data["functions"]} == {"raise"}
    reasons = {r["text"] for f in data["functions"] for m in f["methods"] for r in m["reasons"]}
    assert reasons == {"freeze(jit=...) leaves it out"}


def test_a_package_that_freezes_itself_keeps_its_policy(folder):
    data = json.loads(run(folder, "selfish", "--json").stdout)
    (function,) = data["functions"]
    assert function["on_late"] == "warn"
    assert "selfish/__init__.py" in function["where"]


def test_switched_off_is_said(folder):
    done = run(folder, "clean", PLUM_FREEZE="0")
    assert done.returncode == 2
    assert "PLUM_FREEZE=0 is set" in done.stderr


def test_a_reader_that_stops_early_is_no_error(folder):
    command = f"{sys.executable} -m plum_freeze clipkg | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": ROOT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "BrokenPipe" not in done.stderr


def test_help_names_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        _cli.main(["--help"])
    assert "Exit codes: 0" in capsys.readouterr().out


def on_a_terminal(folder, *arguments):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "plum_freeze", *arguments], stdout=theirs, stderr=theirs, cwd=folder,
        env=os.environ | {"PYTHONPATH": ROOT, "TERM": "xterm-256color", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    assert process.wait() == 0
    return found.decode()


def test_a_terminal_gets_colour_and_many_functions_show_progress(folder):
    (folder / "many.py").write_text(
        "import plum\nfor i in range(120):\n    def f(x): return x\n"
        "    f.__name__ = f.__qualname__ = f'f{i}'\n    plum.dispatch(f)\n"
    )
    text = on_a_terminal(folder, "many")
    assert "\x1b[" in text
    assert "Looking at functions" in text
    assert "Looking at functions" not in on_a_terminal(folder, "clean")
