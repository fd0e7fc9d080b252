import sys

from plum_freeze._origin import find

from . import tool


def register(function):
    return find(function)


@register
def method(x):
    return x


print(__name__, sys.argv[1:], tool.name, method.module, method.line, method.executing)
