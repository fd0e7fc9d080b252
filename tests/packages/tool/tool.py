import inspect

from plum_freeze import _hook

name = __name__


def source():
    return inspect.getsource(source).splitlines()[0]


print(__name__, _hook.executing(), source(), type(__loader__.get_data).__name__)
