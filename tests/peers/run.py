"""Environments, source distributions, and one run of a suite."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.suites import ENVIRONMENTS, Suite

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PLUGIN = "plum_freeze_peers"
COPIED = ("pyproject.toml", "pytest.ini", "conftest.py", "tests", "test", "docs", "README.md")
RANK = ["passed", "xfailed", "skipped", "error", "failed"]


# What pip and git say where there is no network. Anything else that goes wrong is a failure.
NO_NETWORK = re.compile(
    "NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries"
    r"|\(from versions: none\)|Could not resolve host|Failed to connect|Network is unreachable|name resolution",
    re.IGNORECASE,
)


class PeerError(Exception):
    """A suite could not be run."""


class UnavailableError(PeerError):
    """Its packages or its tests could not be fetched. This says nothing about the project."""


@dataclass
class Run:
    """What one run of a suite gave.

    Attributes:
        outcomes: By test: passed, xfailed, skipped, error, failed (the worst, if it ran twice).
        seconds: Of the clock.
        processor: Seconds of the processor, which other programs on the machine disturb less.
        facts: What the plugin found out.
        version: Of the distribution whose suite it is.
    """

    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    processor: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    version: str = ""

    def count(self, *kinds: str) -> int:
        """How many tests came out as one of these."""
        return sum(outcome in kinds for outcome in self.outcomes.values())


class Workshop:
    """A folder with environments, source distributions, copies of tests and logs.

    Args:
        folder: Kept between runs; nothing is downloaded or made twice.
        python: Makes the environments.
        given: A Python that has everything already, for the suites of the environment "all".
        limit: Seconds that one run may take.
        instead: Folders with a plum_freeze that is tested instead of this one.
    """

    def __init__(
        self, folder: Path, python: str, given: str | None, limit: float, instead: list[Path]
    ) -> None:
        self.instead = instead
        self.folder = folder
        self.python = python
        self.given = given
        self.limit = limit
        self.unavailable: dict[str, UnavailableError] = {}

    def environment(self, name: str) -> str:
        """The Python of an environment, which is made if it is not there."""
        if self.given is not None and name not in ("plum-py",):
            return self.given
        if name in self.unavailable:
            raise self.unavailable[name]
        folder = self.folder / "environments" / name
        found = folder / "bin/python"
        if not (folder / "ready").exists():
            _call(self.python, "-m", "venv", "--clear", str(folder))
            # Python compiles what is imported; to compile all that is there takes a minute.
            install = (str(found), "-m", "pip", "install", "-q", "--no-compile")
            try:
                _call(*install, *ENVIRONMENTS[name])
            except UnavailableError as error:
                self.unavailable[name] = error
                raise
            _call(*install, "-e", str(PROJECT))
            (folder / "ready").touch()
        return str(found)

    def tests(self, name: str, suite: Suite, python: str, version: str) -> Path:
        """A fresh copy of a suite's tests, documents and configuration, without the sources."""
        if suite.repository is None:
            source = self._source(suite.distribution, version, python)
        else:
            source = self._clone(suite, version)
        folder = self.folder / "tests" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for each in COPIED:
            if (source / each).is_dir():
                shutil.copytree(source / each, folder / each)
            elif (source / each).exists():
                shutil.copy(source / each, folder / each)
        project, own = folder / "pyproject.toml", folder / "pytest.ini"
        if not own.exists() and "tool.pytest" not in (
            project.read_text() if project.exists() else ""
        ):
            own.write_text("[pytest]\n")  # so that no configuration further up is picked up
        if suite.edit is not None:
            suite.edit(folder)
        return folder

    def _source(self, distribution: str, version: str, python: str) -> Path:
        folder = self.folder / "sources" / f"{distribution}-{version}"
        if not (folder / "ready").exists():
            folder.mkdir(parents=True, exist_ok=True)
            # Only this one from source: the backends that pip needs to look at it come as wheels.
            _call(
                python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", distribution,
                "-d", str(folder), f"{distribution}=={version}",
            )  # fmt: skip
            (archive,) = folder.glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (folder / "ready").touch()
        (found,) = (each for each in folder.iterdir() if each.is_dir())
        return found

    def _clone(self, suite: Suite, version: str) -> Path:
        folder = self.folder / "sources" / f"{suite.distribution}-{version}"
        if not folder.exists():
            address = f"https://github.com/{suite.repository}"
            _call("git", "clone", "-q", "--depth", "1", "-b", f"v{version}", address, str(folder))
        return folder

    def kept(self, name: str, mode: str) -> Run | None:
        """What a run gave that was made earlier in this folder."""
        path = self.folder / "out" / name / f"{mode}.run.json"
        return Run(**json.loads(path.read_text())) if path.exists() else None

    def run(self, name: str, suite: Suite, mode: str, extra: list[str]) -> Run:
        """Run a suite: "plain", or in a mode of the plugin.

        Raises:
            UnavailableError: What it needs could not be fetched.
            PeerError: Nothing ran, or the run crashed or took too long.
        """
        output = self.folder / "out" / name
        output.mkdir(parents=True, exist_ok=True)
        (output / f"{mode}.run.json").unlink(missing_ok=True)
        python = self.environment(suite.environment)
        version = version_of(suite.distribution, python)
        folder = self.tests(name, suite, python, version)
        files = {kind: output / f"{mode}.{kind}" for kind in ("xml", "json", "log", "outcomes")}
        for path in files.values():
            path.unlink(missing_ok=True)
        command = [python, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        # plum_freeze's own pytest plugin stays out: a plain run has nothing of ours in it.
        command += ["-p", "no:plum_freeze", f"--junitxml={files['xml']}", *suite.arguments, *extra]
        if has("hypothesis", python):
            command += ["--hypothesis-seed=0"]
        environment = _environment()
        if mode != "plain":
            command += ["-p", PLUGIN]
            environment |= {
                "PYTHONPATH": os.pathsep.join(map(str, (HERE / "plugin", *self.instead))),
                "PEERS_MODE": mode,
                "PEERS_FREEZE": suite.when,
                "PEERS_FACTS": str(files["json"]),
            }
        start, used = time.perf_counter(), _processor()
        with files["log"].open("w") as log:
            try:
                code = subprocess.run(
                    command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT,
                    timeout=self.limit, check=False,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                raise PeerError(
                    f"{name}, {mode}: more than {self.limit:.0f} s; see {files['log']}"
                ) from None
        seconds, processor = time.perf_counter() - start, _processor() - used
        outcomes = _outcomes(files["xml"])
        if code not in (0, 1) or not outcomes:
            raise PeerError(f"{name}, {mode}: pytest ended with {code}; see {files['log']}")
        files["outcomes"].write_text("".join(f"{o} {k}\n" for k, o in sorted(outcomes.items())))
        facts = json.loads(files["json"].read_text()) if files["json"].exists() else {}
        run = Run(outcomes, seconds, processor, facts, version)
        (output / f"{mode}.run.json").write_text(json.dumps(asdict(run)))
        return run


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    unwanted = (
        "PYTEST_ADDOPTS",
        "PYTHONDONTWRITEBYTECODE",
        "CI",
        "GITHUB_ACTIONS",
        "PYTHONPATH",
        "PLUM_FREEZE",
        "PLUM_FREEZE_ON_LATE",
    )
    return {k: v for k, v in os.environ.items() if k not in unwanted} | {
        "JAX_PLATFORMS": "cpu",
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "Agg",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _outcomes(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    if not path.exists():
        return found
    for case in ET.parse(path).iter("testcase"):
        outcome = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = {"failure": "failed", "error": "error"}[child.tag]
            elif child.tag == "skipped":
                outcome = "xfailed" if "xfail" in (child.get("type") or "") else "skipped"
        key = f"{case.get('classname')}::{case.get('name')}"
        found[key] = max(found.get(key, outcome), outcome, key=RANK.index)
    return found


def version_of(distribution: str, python: str) -> str:
    """The version that an environment has."""
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    return _call(python, "-c", code, distribution).strip()


def has(module: str, python: str) -> bool:
    """Whether an environment has a module."""
    code = "import sys, importlib.util as u; print(u.find_spec(sys.argv[1]) is not None)"
    return _call(python, "-c", code, module).strip() == "True"


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode:
        for line in done.stderr.splitlines():
            if NO_NETWORK.search(line):
                raise UnavailableError(line.strip())
        raise PeerError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


if sys.version_info < (3, 12):  # noqa: UP036  JAX 0.11.2 needs it
    raise SystemExit("python -m tests.peers needs Python 3.12 or newer")
