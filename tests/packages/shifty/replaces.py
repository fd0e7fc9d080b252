import sys


class Stand:
    """No module: it answers nothing but one name."""

    __slots__ = ("value",)


instance = Stand()
instance.value = 42
sys.modules[__name__] = instance
