"""What the suites of real packages (`tests/peers`) found, each kind without the package."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(program: str) -> None:
    """Run a program in a process of its own, in which no JAX is installed."""
    blocked = "import sys; sys.modules['jax'] = None\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_frozen_with_jit_where_no_jax_is_installed():
    # plum's own suite: 22 tests ended with "No module named 'jax'", at the first object of a class.
    run("""
        import plum, plum_freeze

        class C: ...

        class D(C):
            @plum.dispatch
            def m(self, x: int):
                return x + 1

        @plum.dispatch
        def f(x: C, y: int):
            return y

        plum_freeze.freeze(f, D.m, jit=True)
        for _ in range(3):
            assert f(C(), 1) == 1
            assert f(D(), 2) == 2
            assert D().m(2) == 3
        assert f.invoke(C, int)(C(), 3) == 3
    """)
