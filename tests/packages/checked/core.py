from plum_freeze._origin import find

from . import leaf as leaf


@find
def method(x: int) -> int:
    return x


def wrong() -> int:
    return "no int"
