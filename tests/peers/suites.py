"""Which packages, at which version, what their suites need, and what is left out of them and why.

Nothing of theirs is kept here: environments are made by name and version, tests come from the
public source distributions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PLUM = "2.10.1"
# JAX 0.11.2: with 0.12 coordinax, quaxed and unxt fail plainly (hypot, erfc).
JAX = "0.11.2"

_PLUMS = (f"plum-dispatch=={PLUM}", "beartype==0.23.1", "pytest", "sybil", "ipython", "numpy")
_WESSELS = (
    "backends==1.9.0",
    "autograd",
    "algebra==1.2.1",
    "backends-matrix==1.3.0",
    "mlkernels==0.4.0",
    "stheno==1.4.2",
)
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    # without JAX, too
    "plum-py": (*_PLUMS, "--no-binary", "plum-dispatch"),
    "small": (
        f"jax=={JAX}", *_PLUMS, "algebra==1.2.1", "dataclassish==0.9.2", "quax==0.4.6", "quaxed==0.10.7",
        "quax-blocks==0.5.1", "pytest-env", "attrs",
    ),
    "all": (
        f"jax=={JAX}", *_PLUMS, *_WESSELS, "quax==0.4.6", "quaxed==0.10.7", "quax-blocks==0.5.1",
        "dataclassish==0.9.2", "unxt==2.0.6", "coordinax==0.24.3", "unxts.hypothesis==2.0.2", "pytest-env", "attrs",
        "pytest-arraydiff", "hypothesis",
    ),
    "netket": (f"jax=={JAX}", *_PLUMS, "netket==3.23.0"),
}  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """One test suite.

    Attributes:
        distribution: Whose source distribution has the tests, at the version that is installed.
        environment: A key of `ENVIRONMENTS`.
        arguments: For pytest.
        edit: Changes the copy of the tests, for an environment without some of its backends.
        when: When functions are frozen, see `plugin/plum_freeze_peers.py`.
        repository: On GitHub, of a distribution that has no tests in it.
    """

    distribution: str
    environment: str = "all"
    arguments: tuple[str, ...] = ("tests",)
    edit: Callable[[Path], None] | None = None
    when: str = "collected"
    repository: str | None = None


def _ignore(*paths: str) -> tuple[str, ...]:
    return tuple(f"--ignore=tests/{path}" for path in paths)


# -- edits, for an environment without TensorFlow and PyTorch (several GB) ------------------------


def _change(folder: Path, name: str, *changes: tuple[str, str]) -> None:
    path = folder / name
    text = path.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"{name}: nothing matches {pattern}")
    path.write_text(text)


def _no_frameworks(folder: Path) -> None:
    path = folder / "tests/__init__.py"
    unwanted = r"^import (lab|stheno|mlkernels)\.(torch|tensorflow)\n"
    path.write_text(re.sub(unwanted, "", path.read_text(), flags=re.MULTILINE))


def _stheno(folder: Path) -> None:
    _no_frameworks(folder)
    _change(
        folder,
        "tests/model/test_model.py",
        (r"^import tensorflow as tf$", "import numpy as np"),
        (r"\btf\.float64\b", "np.float64"),
    )


def _lab(folder: Path) -> None:
    _no_frameworks(folder)
    _change(
        folder,
        "tests/util.py",
        (r"^import (tensorflow as tf|torch)\n", ""),
        (r"tf\.TensorShape, torch\.Size, ", ""),
        (r"return \[self\.np\(\), self\.tf\(\), self\.torch\(\), ", "return [self.np(), "),
        (
            r"for t in \[B\.AGNumeric, B\.TorchNumeric, B\.TFNumeric, B\.JAXNumeric\]",
            "for t in [B.AGNumeric, B.JAXNumeric]",
        ),
    )


# test_cache.py asserts on seconds. incompatible_with_mypyc is plum's own marker.
_PLUM = ("tests", *_ignore("test_cache.py"))
_COMPILED = (*_PLUM, "-k", "not incompatible_with_mypyc")

SUITES: dict[str, Suite] = {
    "plum": Suite("plum-dispatch", "small", _COMPILED, when="called"),
    "plum-py": Suite("plum-dispatch", "plum-py", _PLUM, when="called"),
    "plum-docs": Suite("plum-dispatch", "small", ("docs",), when="called"),
    "algebra": Suite("algebra", "small"),
    "dataclassish": Suite("dataclassish", "small"),
    # these three files read the checkout (skills/, AGENTS.md, src/)
    "quax-blocks": Suite(
        "quax-blocks",
        "small",
        arguments=(
            "tests",
            *_ignore("test_doc_links.py", "test_skill_examples.py", "test_quaxed_names.py"),
        ),
    ),
    # that test reads the checkout's src/
    "quax": Suite(
        "quax",
        arguments=(
            "tests",
            "--deselect",
            "tests/unit/test_version_guards.py::test_no_hasattr_probing_of_jax_internals",
        ),
    ),
    "quaxed": Suite("quaxed"),
    # version guards read src/; matplotlib compares images; the two *performance ones time
    "unxt": Suite(
        "unxt",
        arguments=(
            "tests",
            *_ignore(
                "benchmark",
                "typing",
                "integration/matplotlib",
                "integration/test_uconvert_value_performance.py",
                "unit/test_version_guards.py",
            ),
        ),
    ),
    "coordinax": Suite("coordinax"),
    "lab-light": Suite(
        "backends",
        arguments=tuple(f"tests/test_{n}.py" for n in ("control_flow", "linear_algebra", "shape")),
        edit=_lab,
    ),
    "matrix": Suite(
        "backends-matrix",
        arguments=(
            "tests",
            *_ignore(
                *(f"ops/test_{n}.py" for n in ("multiply", "matmul", "add", "concat", "ratio"))
            ),
        ),
    ),
    # test_posterior and test_subspace import plum.util and plum.repr_short, gone since plum 2
    "mlkernels-light": Suite(
        "mlkernels",
        arguments=(
            "tests",
            *_ignore(
                "test_boxing.py",
                *(f"kernels/test_{n}.py" for n in ("derivative", "posterior", "subspace")),
                "means/test_derivative.py",
            ),
        ),
        edit=_no_frameworks,
    ),
    "stheno-light": Suite(
        "stheno",
        arguments=("tests", "--deselect", "tests/model/test_model.py::test_derivative"),
        edit=_stheno,
    ),
    # the parts that dispatch: groups, operators, variational states; one process, as all others
    "netket": Suite(
        "netket",
        "netket",
        arguments=(
            "-o",
            "addopts=--import-mode=importlib",
            "test/utils/test_group.py",
            "test/operator/test_sum_operator.py",
            "test/observable/test_vscore.py",
            "test/observable/variance",
            "test/variational/test_local_estimators.py",
        ),
        repository="netket/netket",
    ),
}

# Within 10 minutes on two cores.
CI = ("plum", "plum-py", "dataclassish", "algebra", "quax-blocks")
