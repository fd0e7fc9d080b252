from plum_freeze._origin import find


@find
def method(x):
    return x
