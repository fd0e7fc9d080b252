"""A loop that registers for classes of one name, from one line."""

from . import dispatch


def make():
    class Config:
        pass

    return Config


CLASSES = [make(), make(), make()]
for cls in CLASSES:

    @dispatch
    def f(x: cls):
        return "config"
