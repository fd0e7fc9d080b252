"""What `isinstance` depends on beyond the type, for one hint and one class.

Plum's resolver asks beartype whether each argument matches each hint. Its answer can be kept under
a key, if the key holds all that the answer depends on. The terms are those of plum's issue 290,
<https://github.com/beartype/plum/issues/290>. Plum gives one answer per hint; here it is one per
hint *and class*, because `list[int]` cannot match an array, whatever is in the list.
"""

from __future__ import annotations

import abc
import enum
import functools
import operator
import sys
import types
import typing
import weakref
from inspect import getmro
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeVar, get_args, get_origin

from plum_freeze import _jax, _jaxtyping, _plum

if TYPE_CHECKING:
    from collections.abc import Iterable


class KeyPart(enum.IntFlag):
    """What a key must hold about an argument, beyond its type."""

    TYPE = 0
    AVAL = enum.auto()  # the aval of a JAX value: kind, dtype, shape
    ARRAY = enum.auto()  # dtype and shape of an array that is not JAX's
    SCOPE = enum.auto()  # the names that a `jaxtyped` function has bound: no caching in there
    IDENTITY = enum.auto()  # the argument itself, which is a class
    VALUE = enum.auto()  # type and bits of the argument
    NEVER = enum.auto()  # anything: plum resolves each call


def verdict(hint: Any, cls: type) -> bool | KeyPart:
    """Whether values of exactly this class match, or what else it depends on.

    True and False are final for the class, until `abc.get_cache_token()` moves or somebody calls
    `make_transparent()` on a jaxtyping hint. The hint is taken as it is, the way plum's resolver
    does: a promised type in it matches nothing, also after it has been delivered.
    """
    if hint is Any or hint is object:
        return True
    hint = types.NoneType if hint is None else hint
    # Not `isinstance`: a hint can be an object that lies about its class.
    if issubclass(type(hint), type):
        return _class_verdict(hint, cls)
    found = _special_verdict(hint, cls)
    if isinstance(found, KeyPart) or _plum.is_well_formed(hint):
        return found
    return KeyPart.NEVER


def is_loud(hint: Any, cls: type) -> bool:
    """Whether checking a value of this class can run code that raises, or has other effects."""
    return isinstance(verdict(hint, cls), KeyPart) and (not is_honest(cls) or _runs_code(hint))


# -- hints that are no classes ------------------------------------------------------------------


def is_union(hint: Any) -> bool:
    """Whether it is `A | B`, `Union[A, B]` or `Optional[A]`."""
    return get_origin(hint) in (typing.Union, types.UnionType) and bool(get_args(hint))


def _special_verdict(hint: Any, cls: type) -> bool | KeyPart:
    if (inner := unwrapped(hint)) is not hint:
        return verdict(inner, cls)
    if is_union(hint):
        return _union_verdict(get_args(hint), cls)
    origin = get_origin(hint)
    if origin is Literal:
        return _literal_verdict(get_args(hint), cls)
    if origin is Annotated:
        # The validators run on what matches the bare hint, so only False is final.
        return False if verdict(hint.__origin__, cls) is False else KeyPart.NEVER
    if not isinstance(origin, type):
        return KeyPart.NEVER
    of_origin = verdict(origin, cls)
    if getattr(typing, getattr(hint, "_name", None) or "", None) is hint:
        return of_origin  # `typing.List`; `tuple[()]` has no arguments either, but looks at items
    if of_origin is False:
        return False
    if origin is type and of_origin is True:
        return _subclass_verdict(get_args(hint)[0])
    return KeyPart.NEVER


def unwrapped(hint: Any) -> Any:
    """The hint that beartype checks in place of a `NewType`, `TypeVar` or plain `Annotated`."""
    if isinstance(hint, NewType):
        return hint.__supertype__
    if type(hint) is TypeVar:
        if hint.__constraints__:
            return typing.Union[hint.__constraints__]  # noqa: UP007  a tuple of them
        return Any if hint.__bound__ is None else hint.__bound__
    if sys.version_info >= (3, 12) and isinstance(hint, typing.TypeAliasType):
        return hint.__value__
    if get_origin(hint) is Annotated and not any(
        type(note).__module__.partition(".")[0] == "beartype" for note in hint.__metadata__
    ):
        return hint.__origin__
    return hint


def _union_verdict(members: tuple[Any, ...], cls: type) -> bool | KeyPart:
    verdicts = [verdict(member, cls) for member in members]
    open_parts = joined(part for part in verdicts if isinstance(part, KeyPart))
    if True not in [found for found in verdicts if isinstance(found, bool)]:
        return open_parts or False
    # One member settles it, but plum may check another one first: that can raise, or bind a name.
    if any(is_loud(member, cls) for member in members):
        return KeyPart.NEVER
    return open_parts & KeyPart.SCOPE or True


def _literal_verdict(literals: tuple[Any, ...], cls: type) -> bool | KeyPart:
    # beartype asks for the type first, so `1.0` does not match `Literal[1]`, though it is equal.
    if not any(issubclass(cls, type(literal)) for literal in literals):
        return False if is_honest(cls) else KeyPart.NEVER
    if cls is types.NoneType:
        return True
    if cls in (bool, int, str, bytes):
        return KeyPart.VALUE
    # An enum without an `__eq__` of its own, and no flag: those make members up as they go.
    plain = issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag)
    trusted: tuple[Any, ...] = (object.__eq__, int.__eq__, str.__eq__)
    return KeyPart.VALUE if plain and cls.__eq__ in trusted else KeyPart.NEVER


def _subclass_verdict(bound: Any) -> bool | KeyPart:
    """`type[bound]` for an argument that is a class."""
    while (inner := unwrapped(bound)) is not bound:
        bound = inner
    if bound is Any or bound is object:
        return True
    members = get_args(bound) if is_union(bound) else (bound,)
    classes = [types.NoneType if member is None else member for member in members]
    if all(issubclass(type(member), type) for member in classes) and all(
        getattr(member, "__faithful__", _checks_types(member, "__subclasscheck__"))
        for member in classes
    ):
        return KeyPart.IDENTITY
    return KeyPart.NEVER


# -- hints that are classes ---------------------------------------------------------------------


def _class_verdict(hint: type, cls: type) -> bool | KeyPart:
    if type(hint) is not type:  # all of these have a metaclass, and most classes have none
        if (array := _jaxtyping.array_hint(hint)) is not None:
            return _array_verdict(array, cls)
        if _jaxtyping.is_pytree_hint(hint):
            anything = not hasattr(hint, "leaftype") or cls is types.NoneType
            return anything or KeyPart.NEVER
        if _jax.is_aval_hint(hint):
            return _aval_verdict(hint, cls)
    if not getattr(hint, "__faithful__", True) or hint.__module__ in _STRUCTURAL:
        return KeyPart.NEVER
    if hint is cls:
        return True if not looks_at_items(hint) else KeyPart.NEVER  # `isinstance` asks nobody
    if not (checks_types(hint) or getattr(hint, "__faithful__", False)):
        return KeyPart.NEVER
    if not _is_subclass(cls, hint):
        return False if is_honest(cls) else KeyPart.NEVER
    return True if not looks_at_items(hint) else KeyPart.NEVER


def _aval_verdict(hint: type, cls: type) -> bool | KeyPart:
    if _jax.is_tracer_class(cls):
        return KeyPart.AVAL if _jax.asks_its_aval(cls) else KeyPart.NEVER
    if type.__subclasscheck__(hint, cls):
        return True
    return False if is_honest(cls) else KeyPart.NEVER


def _array_verdict(hint: _jaxtyping.ArrayHint, cls: type) -> bool | KeyPart:
    if hint.transparent:
        return True
    if hint.array_type is not Any:
        of_type = verdict(hint.array_type, cls)
    else:
        of_type = not _has_no_attributes(cls) or not is_honest(cls)
    if of_type is False:
        return False
    parts = KeyPart.NEVER if hint.computes else _array_part(cls)
    if hint.names_axes:
        parts |= KeyPart.SCOPE
    if isinstance(of_type, KeyPart):
        return parts | of_type
    return True if hint.anything and _is_plain_array(cls) else parts


def _is_plain_array(cls: type) -> bool:
    """Whether `dtype` and `shape` of all values are JAX's or numpy's own, so both are there."""
    if _jax.is_array_class(cls):
        return True
    if "numpy" not in sys.modules:
        return False
    own: Any = sys.modules["numpy"].ndarray
    found: Any = cls
    return issubclass(cls, own) and (found.dtype, found.shape) == (own.dtype, own.shape)


_STRUCTURAL = {
    "typing",
    "typing_extensions",
}  # `IO`, `SupportsInt`, `Generic`: classes of their own


def _array_part(cls: type) -> KeyPart:
    if _jax.is_tracer_class(cls) or _jax.is_array_class(cls):
        return KeyPart.AVAL
    # jaxtyping reads the value's `dtype` and `shape` and nothing else, and so does the key.
    return KeyPart.ARRAY if hasattr(cls, "dtype") and hasattr(cls, "shape") else KeyPart.NEVER


def _has_no_attributes(cls: type) -> bool:
    """Whether no value of this class can have a `dtype` and a `shape`."""
    return (
        cls.__dictoffset__ == 0
        and not hasattr(cls, "__getattr__")
        and not (hasattr(cls, "dtype") and hasattr(cls, "shape"))
    )


def _is_subclass(cls: type, hint: type) -> bool:
    # `type.__instancecheck__` looks at the bases and does not call `__subclasscheck__`.
    if type(hint).__instancecheck__ is type.__instancecheck__:
        return type.__subclasscheck__(hint, cls)
    return issubclass(cls, hint)


# -- whom to trust ------------------------------------------------------------------------------


def checks_types(hint: type) -> bool:
    """Whether `isinstance` with this class on the right looks at `type(x)` and `x.__class__` only.

    Code of somebody else's in the metaclass may look at anything.
    """
    if type(hint).__instancecheck__ is type.__instancecheck__:
        return True
    return _checks_types(hint, "__instancecheck__") and _checks_types(hint, "__subclasscheck__")


def _checks_types(hint: type, check: str) -> bool:
    own = {abc.ABCMeta.__dict__[check], type.__dict__[check]}
    if getattr(hint, "_is_protocol", None) is False:  # a class that implements a protocol
        own |= {type(typing.Protocol).__dict__.get(check)}
    definitions = [vars(meta)[check] for meta in getmro(type(hint)) if check in vars(meta)]
    return all(found in own or _plum.is_parametric_check(found) for found in definitions)


def looks_at_items(hint: type) -> bool:
    """Whether the class derives from something like `list[int]`: beartype checks that too."""
    origins = [
        get_origin(base)
        for ancestor in hint.__mro__
        for base in vars(ancestor).get("__orig_bases__", ())
    ]
    # A generic class of Python's own making, such as `Base[int]`, has bases that are checked here.
    return any(
        origin not in (None, typing.Generic, typing.Protocol)
        and not hasattr(origin, "__orig_bases__")
        for origin in origins
    )


# equinox turns bound methods into pytrees there, and passes `__class__` through.
_FORWARDING = {("equinox._module._module", "Module")}
_WEAK_PROXIES = (weakref.ProxyType, weakref.CallableProxyType)


def is_honest(cls: type) -> bool:
    """Whether `x.__class__` is `type(x)` for all instances: `isinstance` looks at both.

    Proxies and mocks are not honest. Neither is, for want of evidence, what somebody else's C code
    or `__getattribute__` returns.
    """
    for base in cls.__mro__:
        if base is object:
            continue
        if "__class__" in vars(base) or base in _WEAK_PROXIES:
            return False
        if "__getattribute__" not in vars(base):
            continue
        in_c = isinstance(vars(base)["__getattribute__"], types.WrapperDescriptorType)
        known = base.__module__.partition(".")[0] in sys.stdlib_module_names
        if not (in_c and known) and (base.__module__, base.__qualname__) not in _FORWARDING:
            return False
    return True


def _runs_code(hint: Any) -> bool:
    """Whether beartype can run code of somebody else's for it, or of jaxtyping's that raises."""
    if hint is None or hint is Any or get_origin(hint) is Literal:
        return False
    if issubclass(type(hint), type):
        array = _jaxtyping.array_hint(hint)
        if array is not None:
            return array.computes or _runs_code(array.array_type)
        return not (_jax.is_aval_hint(hint) or checks_types(hint))
    if is_union(hint) or isinstance(get_origin(hint), type):
        return any(map(_runs_code, get_args(hint)))
    return hint is not Ellipsis


def joined(parts: Iterable[KeyPart]) -> KeyPart:
    """All parts together."""
    return functools.reduce(operator.or_, parts, KeyPart.TYPE)
