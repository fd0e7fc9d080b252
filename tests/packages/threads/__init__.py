"""Waits, while it is imported, for a thread that imports one of its submodules."""

import importlib
import threading

from plum_freeze import _hook

seen_by_thread = []


def work():
    # Not `from . import inside`, which waits for this package with or without any hook.
    inside = importlib.import_module(f"{__name__}.inside")
    seen_by_thread.extend((_hook.executing(), inside.EXECUTING, inside.method))


thread = threading.Thread(target=work, daemon=True)
thread.start()
thread.join(20)
finished = not thread.is_alive()
