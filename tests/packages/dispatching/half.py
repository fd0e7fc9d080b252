import pathlib

from . import dispatch


@dispatch
def f(x: bytes):
    return "bytes"


if pathlib.Path(__file__).with_name("broken").exists():
    raise ZeroDivisionError("half way")


@dispatch
def g(x: bytes):
    return "bytes"
