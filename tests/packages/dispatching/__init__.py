"""Functions of plum. The other modules register on them, and are imported when a test wants it."""

import plum

dispatch = plum.Dispatcher()


@dispatch
def f(x: object):
    return "object"


@dispatch
def g(x: object):
    return "object"


def sub(name):
    """Import a submodule, as PEP 562 and lazy attributes do."""
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
