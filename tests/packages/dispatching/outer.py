from . import dispatch


@dispatch
def f(x: list):
    return "list"


from . import late  # noqa: E402, F401


@dispatch
def f(x: dict):
    return "dict"
