"""Registers from a function, and for another module."""

import functools

from plum_freeze._origin import find

from . import core as core


def register(function):
    return find(function)


def late():
    @find
    def inner(x):
        return x

    return inner


@register
def through_a_helper(x):
    return x


@register
@functools.cache
def cached(x):
    return x


foreign = register(functools.reduce)
