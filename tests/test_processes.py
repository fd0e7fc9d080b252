"""Child processes: spawn, fork before JAX starts, executors; and pickling as plain plum has it."""

import os
import subprocess
import sys
import textwrap

import pytest

SOURCE = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import plum
import plum_freeze

plum_freeze.install()
dispatch = plum.Dispatcher()


@dispatch
def f(x: int) -> float:
    return x / 2


@dispatch
def f(x: list[int]):
    return sum(x)


plum_freeze.freeze()


def work(x):
    assert plum_freeze.is_frozen(f)
    return f(x)


def array_work(n):
    import jax.numpy as jnp

    @dispatch
    def g(x: object):
        return x * 2

    plum_freeze.freeze(g)
    return float(g(jnp.ones(n)).sum())
"""


def run(tmp_path, main):
    script = tmp_path / "frozen_script.py"
    script.write_text(SOURCE + "\n\nif __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(main), "    "))
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_pools(tmp_path, method):
    out = run(
        tmp_path,
        f"""
        context = multiprocessing.get_context({method!r})
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            print(*pool.map(work, [1, 3, [4, 5]]))
        """,
    )
    assert out == ["0.5", "1.5", "9"]


def test_spawned_children_use_jax(tmp_path):
    out = run(
        tmp_path,
        """
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            print(*pool.map(array_work, [3, 4]))
        """,
    )
    assert out == ["6.0", "8.0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_fork_before_jax_starts(tmp_path):
    out = run(
        tmp_path,
        """
        import jax
        pid = os.fork()
        if pid == 0:
            os._exit(0 if array_work(3) == 6.0 and f(1) == 0.5 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), f(3))
        """,
    )
    assert out == ["0", "1.5"]


def test_pickling_is_as_in_plain_plum(tmp_path):
    out = run(
        tmp_path,
        """
        import copy, pickle

        def attempt(function, action):
            try:
                return action(function) is function
            except Exception as error:
                return type(error).__name__

        actions = [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy]
        frozen = [attempt(f, action) for action in actions]
        plum_freeze.thaw(f)
        f._cache = {}
        print(frozen == [attempt(f, action) for action in actions])
        """,
    )
    assert out == ["True"]
