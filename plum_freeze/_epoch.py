"""The epoch: one number that guards everything that JAX has compiled."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import wrapt

from plum_freeze._errors import FreezeError

log = logging.getLogger("plum_freeze")

# JAX keeps the entries of superseded epochs and scans them: after 500 moves a hot call takes 170 us
# in place of 9, a third of a microsecond for each. So there are never more than three. Clearing
# costs nothing more at a move, since everything is compiled again anyway.
MOVES_BETWEEN_CLEARING = 4


class Epoch:
    """A number that is part of the key of every trace, lowering and compilation cache of JAX.

    Moving it makes every jitted function trace again at its next call, in every thread. It is made
    when JAX is imported, and what had been compiled before that is compiled again once.
    `jax.make_user_context` is public since JAX 0.7.2.
    """

    def __init__(self) -> None:
        self._context: Any = None
        self._lock = threading.Lock()
        self.moves = 0

    def start(self) -> bool:
        """Become part of the keys, if JAX is there; otherwise when it is imported.

        Says whether that was now. Nothing that was compiled before is ever used again then.
        """
        if _started.is_set():
            return False
        _started.set()
        wrapt.register_post_import_hook(self._make, "jax")
        return True

    def _make(self, jax: Any) -> None:
        with self._lock:
            if self._context is None:
                if not hasattr(jax, "make_user_context"):
                    raise FreezeError(TOO_OLD.format(version=jax.__version__))
                self._context = jax.make_user_context(0)

    def move(self) -> None:
        """Have every jitted function trace again at its next call."""
        if self._context is None:
            return  # without JAX nothing is compiled, and what JAX compiles later is new
        with self._lock:
            self.moves += 1
            moves = self.moves
            # JAX 0.7.2 has no public name for it yet.
            context = self._context
            (context if hasattr(context, "set_global") else context._obj).set_global(moves)
        log.info("what JAX has compiled is compiled again at its next call (move %d)", moves)
        if moves % MOVES_BETWEEN_CLEARING == 0:
            sys.modules["jax"].clear_caches()


TOO_OLD = """\
plum_freeze needs JAX 0.7.2 or later, and this is JAX {version}.
What to do: pip install --upgrade 'jax>=0.7.2'. (Before 0.7.2 JAX has no `jax.make_user_context`, so
a late registration could not reach the functions that were compiled before it.)"""

_started = threading.Event()
epoch = Epoch()
