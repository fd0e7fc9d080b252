from . import dispatch, f


@dispatch
def f(x: int):
    return "int"


@dispatch
def g(x: str):
    return "str"


@f.dispatch
def f_of_floats(x: float):
    return "float"
