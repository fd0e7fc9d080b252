"""Two slots of CPython's classes that Python code cannot set, for speed and for older versions.

Each is only touched where the class is found to be laid out as CPython 3.11 and later lay it out.
Where it is not, all works, and a look-up takes 40 ns more.
"""

from __future__ import annotations

import ctypes
import sys

_HAVE_VECTORCALL = 1 << 11

# Words of `PyTypeObject`, by their number.
_BASICSIZE, _AS_MAPPING, _FLAGS = 4, 14, 21


def call_what_the_class_says(cls: type) -> None:
    """Have `instance()` use a `__call__` that was replaced on a compiled class.

    In Python 3.11 a call goes past it, through a pointer in the instance, for as long as the class
    has this flag. Later versions take the flag away when `__call__` is assigned (CPython issue
    93274, pull request 95437); this does the same.
    """
    if sys.version_info < (3, 12) and cls.__flags__ & _HAVE_VECTORCALL and _is_known(cls):
        _words(id(cls))[_FLAGS] &= ~_HAVE_VECTORCALL


def subscript_as_dict(cls: type) -> None:
    """Have `instance[key]` of a subclass of `dict` run the C code of `dict` itself.

    `dict.__getitem__` is a method in CPython and no slot, so that a subclass that was written in
    Python looks that method up and calls it. `__missing__` is called all the same.
    """
    if not (_is_known(cls) and _is_known(dict)):
        return
    own, of_dict = (_words(_words(id(each))[_AS_MAPPING]) for each in (cls, dict))
    if own[0] == of_dict[0]:  # the length, which is a slot: it is inherited
        own[1] = of_dict[1]


def _is_known(cls: type) -> bool:
    words = _words(id(cls))
    return (words[_BASICSIZE], words[_FLAGS]) == (cls.__basicsize__, cls.__flags__)


def _words(address: int) -> ctypes.Array[ctypes.c_size_t]:
    return (ctypes.c_size_t * (_FLAGS + 1)).from_address(address)
