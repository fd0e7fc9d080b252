"""Everything that touches plum's private names. No other module does.

plum is imported when it is first needed, because it imports rich and beartype.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import wrapt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import plum

    Function: TypeAlias = plum.Function
    Method: TypeAlias = plum.Method
    Signature: TypeAlias = plum.Signature


@functools.cache
def _is_bearable() -> Callable[[Any, Any], bool]:
    from plum._bear import is_bearable

    return is_bearable


def matches(value: Any, hint: Any) -> bool:
    """Whether plum's resolver takes `value` for an instance of `hint`."""
    return bool(_is_bearable()(value, hint))


def resolved_hint(hint: Any) -> Any:
    """`hint` with every promised type that has been delivered in its place."""
    from plum import resolve_type_hint

    return resolve_type_hint(hint)


# -- what a function is --------------------------------------------------------------------------


def is_function(value: Any) -> bool:
    """Whether `value` is a dispatched function of plum."""
    from plum import Function

    return isinstance(value, Function)


def functions() -> list[Function]:
    """Every dispatched function of the process, also those in anonymous dispatchers."""
    from plum import Function

    return list(Function._instances)


def function_of(value: Any) -> Function | None:
    """The dispatched function behind `value`: itself, or the one that `obj.method` is bound to."""
    if is_function(value):
        return value  # type: ignore[no-any-return]
    bound = getattr(value, "__func__", value)
    inner = getattr(bound, "_f", None) if type(bound).__name__ == "_BoundFunction" else None
    return inner if is_function(inner) else None


def first_implementation(function: Function) -> Callable[..., Any]:
    """The function that was decorated first. Its module is where the function is defined."""
    return function._f


def module_of(function: Function) -> str:
    """The module that defines the function."""
    # Not `function.__module__`: on the compiled plum it raises where a method has no module.
    return getattr(function._f, "__module__", None) or ""


def name_of(function: Function) -> str:
    """Module and qualified name, for people."""
    module = module_of(function)
    return f"{module}.{function.__qualname__}" if module else function.__qualname__


def owner_name(function: Function) -> str | None:
    """The class whose body defines the function, as text; None outside of classes."""
    return function._owner_name


def is_plums_own(function: Function) -> bool:
    """Whether plum itself defines it: `convert`, `promote`, and what they consist of."""
    return module_of(function).partition(".")[0] == "plum"


def rules_of_conversion() -> Function:
    """The function whose methods are the conversions, `plum.add_conversion_method`."""
    from plum import _promotion

    return _promotion._convert  # type: ignore[return-value]  # plum types it as what it wraps


def rules_of_promotion() -> Function:
    """The function whose methods are the promotion rules, `plum.add_promotion_rule`."""
    from plum import _promotion

    return _promotion._promotion_rule  # type: ignore[return-value]


def convert(value: Any, hint: Any) -> Any:
    """Convert a result to the annotated return type, as plum does after each call."""
    import plum

    return plum.convert(value, hint)


def converts_by_identity(cls: type, hint: Any) -> bool:
    """Whether the rule for values of this type is one of plum's own that give back the value.

    That is the default, which only checks the value, and `list` to `list` and `tuple` to `tuple`.
    """
    function = rules_of_conversion()
    implementation, _ = choose_any(function, signature((cls, hint)))
    if implementation is function._f:
        return True
    rule = next((c.cell_contents for c in implementation.__closure__ or ()), None)
    return (
        cls is hint
        and cls in (list, tuple)
        and getattr(rule, "__module__", "") == "plum._promotion"
    )


# -- the method cache ----------------------------------------------------------------------------


def cache_of(function: Function) -> dict[Any, Any]:
    """Plum's own method cache, which a table replaces."""
    return function._cache


def set_cache(function: Function, cache: dict[Any, Any]) -> None:
    """Replace plum's method cache. The compiled plum accepts every subclass of dict."""
    function._cache = cache


def has_pending(function: Function) -> bool:
    """Whether registrations wait to be resolved at the next call."""
    return bool(function._pending)


def register_again(function: Function) -> None:
    """Have plum resolve every annotation again: promised types may have been delivered."""
    function.clear_cache()


# -- methods and resolution ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One registration as plum keeps it: the arguments of `Function.register`."""

    implementation: Callable[..., Any]
    signature: Signature | None
    precedence: int | None

    def is_same(self, other: Entry) -> bool:
        """Whether both are the very same registration."""
        return (
            self.implementation is other.implementation
            and self.signature is other.signature
            and self.precedence == other.precedence
        )

    @property
    def key(self) -> tuple[int, int, int | None]:
        """Identifies the registration for as long as plum keeps it."""
        return id(self.implementation), id(self.signature), self.precedence


def entries(function: Function) -> list[Entry]:
    """All registrations of the function in order, those that wait for their resolution last."""
    return [Entry(*entry) for entry in [*function._resolved, *function._pending]]


def pending_entries(function: Function) -> list[Entry]:
    """The registrations that wait for their resolution."""
    return [Entry(*entry) for entry in function._pending]


def forget_entries(function: Function, unwanted: Iterable[Entry]) -> None:
    """Take registrations back: what they replaced is in force again."""
    keys = {entry.key for entry in unwanted}
    with function._lock:
        function._pending = [e for e in function._pending if Entry(*e).key not in keys]
        function._resolved = [e for e in function._resolved if Entry(*e).key not in keys]
        function.clear_cache()


def resolved_methods(function: Function) -> list[Method]:
    """The methods that plum has resolved so far. Resolves nothing."""
    return list(function._resolver.methods)


def resolve_pending(function: Function) -> None:
    """Resolve what waits, as plum does at the next call. Raises what plum raises."""
    function._resolve_pending_registrations()


def choose(function: Function, args: tuple[Any, ...]) -> Method:
    """The method for these arguments among the function's own, never from a cache.

    Raises:
        plum.NotFoundLookupError: No method applies (those of parent classes are not asked).
        plum.AmbiguousLookupError: Several apply and none is more specific.
    """
    function._resolve_pending_registrations()
    return function._resolver.resolve(args)


def choose_any(function: Function, args: Any) -> tuple[Callable[..., Any], Any]:
    """Implementation and return type, with parent classes asked; errors as from a plain call."""
    return _original("resolve_method")(function, args)  # type: ignore[no-any-return]


def choose_among(methods: Sequence[Method], types: tuple[type, ...]) -> Method | None:
    """The most specific of `methods` for arguments of these types, all of which apply.

    Plum's own resolver decides, so that its rules of specificity and precedence hold. Returns None
    where it finds none or several.

    Raises:
        LookupError: The types alone do not show plum that each of the methods applies.
    """
    from plum import AmbiguousLookupError, NotFoundLookupError
    from plum import Signature as PlumSignature
    from plum._resolver import Resolver

    target = PlumSignature(*types)
    if not all(target <= method.signature for method in methods):
        raise LookupError(types)
    resolver = Resolver()
    resolver.methods.extend(methods)
    try:
        return resolver.resolve(target)
    except (AmbiguousLookupError, NotFoundLookupError):
        return None


def methods_after(methods: Sequence[Method], new: Iterable[Method]) -> list[Method]:
    """What `methods` are once `new` are registered: an equal signature is replaced in its place."""
    from plum._resolver import Resolver

    resolver = Resolver()
    resolver.methods.extend(methods)
    for method in new:
        resolver.register(method)
    return list(resolver.methods)


def methods_of(entry: Entry, name: str) -> list[Method]:
    """The methods that a registration will give: one, and one for each default value.

    Annotations are resolved on a copy, so that plum still resolves the originals when it would.

    Raises:
        Exception: An annotation cannot be resolved yet, or plum will refuse the method.
    """
    from plum import Method as PlumMethod
    from plum import Signature as PlumSignature
    from plum import append_default_args, extract_return_type

    function = _with_own_annotations(entry.implementation)
    signature = entry.signature
    if signature is None:
        signature = PlumSignature.from_callable(function, precedence=entry.precedence or 0)
    return_type = extract_return_type(function)
    return [
        PlumMethod(entry.implementation, each, function_name=name, return_type=return_type)
        for each in append_default_args(signature, function)
    ]


def _with_own_annotations(function: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(function, FunctionType):
        return function
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__type_params__ = getattr(function, "__type_params__", ())  # type: ignore[attr-defined]
    return copy


def with_types_swapped(method: Method) -> Method:
    """The same method for two arguments in the other order."""
    from plum import Method as PlumMethod
    from plum import Signature as PlumSignature

    swapped = PlumSignature(
        *reversed(method.signature.types), precedence=method.signature.precedence
    )
    return PlumMethod(
        method.implementation,
        swapped,
        function_name=method.function_name,
        return_type=method.return_type,
    )


def parents_holding(function: Function) -> list[tuple[type, Any]]:
    """The classes that plum asks for an inherited method, up to the one that answers.

    Each with what its body or a later assignment put under the function's name.
    """
    name = function._f.__name__
    missing = None
    found: list[tuple[type, Any]] = []
    for parent in function.owner.__mro__[1:] if function.owner else ():
        if parent in {object, type}:
            continue
        value = parent.__dict__.get(name, missing)
        found.append((parent, value))
        if value is not missing and not getattr(value, "__isabstractmethod__", False):
            break
    return found


def promised_types(method: Method) -> list[type]:
    """The promised types in a signature that were not delivered when plum resolved it."""
    from plum._type import ResolvableType

    found: list[type] = []

    def look(hint: Any) -> None:
        if isinstance(hint, ResolvableType):
            found.append(hint)
        for argument in getattr(hint, "__args__", ()) or ():
            look(argument)

    for hint in method.signature.types:
        look(hint)
    if method.signature.has_varargs:
        look(method.signature.varargs)
    return found


def is_promise(hint: Any) -> bool:
    """Whether a hint is a promised type that was not delivered when plum resolved it."""
    from plum._type import ResolvableType

    return isinstance(hint, ResolvableType)


def module_of_promise(promise: Any) -> str | None:
    """The module whose import delivers a `plum.ModuleType`; None for a `PromisedType`."""
    return getattr(promise, "_module", None)


def signature_text(entry: Entry) -> str:
    """The signature as people write it, also where it cannot be resolved yet."""
    if entry.signature is not None:
        hints = [*entry.signature.types]
        return "(" + ", ".join(map(hint_text, hints)) + ")"
    function = entry.implementation
    code = getattr(function, "__code__", None)
    if code is None:
        return "(...)"
    annotations = getattr(function, "__annotations__", {})
    names = code.co_varnames[: code.co_argcount]
    parts = [
        f"{name}: {hint_text(annotations[name])}" if name in annotations else name for name in names
    ]
    if code.co_flags & 0x04:  # CO_VARARGS
        name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        hint = f": {hint_text(annotations[name])}" if name in annotations else ""
        parts.append(f"*{name}{hint}")
    return "(" + ", ".join(parts) + ")"


def hint_text(hint: Any) -> str:
    """A hint as plum shows it, shortly."""
    if isinstance(hint, str):
        return hint
    from plum.repr import repr_short

    return repr_short(hint)


# -- the ways in ---------------------------------------------------------------------------------


class Registering(Protocol):
    """Is told of each registration, around it: nothing has changed before `proceed()`."""

    def __call__(
        self,
        function: Function | None,
        entries: list[Entry],
        proceed: Callable[[], Any],
    ) -> Any:
        """Call `proceed` and return what it returns, or raise to refuse the registration."""


class Asking(Protocol):
    """Is told of each `invoke` and `resolve_method`: a decision is taken outside of a call."""

    def __call__(self, function: Function, target: tuple[Any, ...], kind: str) -> Any:
        """Return what the original would return."""


_originals: dict[str, Any] = {}
_inside = threading.local()


def _original(name: str) -> Any:
    from plum import Function

    return _originals.get(name) or getattr(Function, name)


def watch(registering: Registering, asking: Asking, delivered: Callable[[Any], None]) -> None:
    """Patch every way in. In the compiled plum no single one of them sees all.

    A registration passes by several of them in the pure-Python plum: the outermost tells.

    Args:
        registering: Called around each registration.
        asking: Called in place of `Function.invoke`, and of `Function.resolve_method`.
        delivered: Called after a promised type got its type.
    """
    from plum import Dispatcher, Function
    from plum._type import ResolvableType

    if _originals:
        return
    for name in ("invoke", "resolve_method"):
        _originals[name] = getattr(Function, name)

    def tell(function: Function | None, found: list[Entry], proceed: Callable[[], Any]) -> Any:
        if getattr(_inside, "registration", False):
            return proceed()

        def guarded() -> Any:
            _inside.registration = True
            try:
                return proceed()
            finally:
                _inside.registration = False

        return registering(function, found, guarded)

    def on_dispatcher(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        method = args[0] if args else None
        if method is None:
            return wrapped(*args, **kwargs)
        precedence = kwargs.get("precedence", 0)
        from plum import get_overloads

        found = [Entry(m, None, precedence) for m in get_overloads(method) or [method]]
        function = existing(instance, method)
        return tell(function, found, lambda: wrapped(*args, **kwargs))

    def on_add_method(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        method, *signatures = args
        found = [Entry(method, s, kwargs.get("precedence")) for s in signatures]
        return tell(existing(instance, method), found, lambda: wrapped(*args, **kwargs))

    def on_dispatch(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        method, precedence = _bind_dispatch(*args, **kwargs)
        if method is None:
            return wrapped(*args, **kwargs)
        return tell(instance, [Entry(method, None, precedence)], lambda: wrapped(*args, **kwargs))

    def on_register_multiple(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        found = [Entry(args[0], s, None) for s in kwargs["signatures"]]
        return tell(instance, found, lambda: wrapped(*args, **kwargs))

    def on_register(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        found = [Entry(*_bind_register(*args, **kwargs))]
        return tell(instance, found, lambda: wrapped(*args, **kwargs))

    def on_invoke(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return asking(instance, args, "invoke")

    def on_resolve(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return asking(instance, (args or tuple(kwargs.values()))[0], "resolve_method")

    def on_deliver(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        delivered(instance)
        return result

    for owner, name, wrapper in (
        (Dispatcher, "__call__", on_dispatcher),
        (Dispatcher, "_add_method", on_add_method),
        (Function, "dispatch", on_dispatch),
        (Function, "_register_one", on_dispatch),
        (Function, "_register_multiple", on_register_multiple),
        (Function, "register", on_register),
        (Function, "invoke", on_invoke),
        (Function, "resolve_method", on_resolve),
        (ResolvableType, "deliver", on_deliver),
    ):
        wrapt.wrap_function_wrapper(owner, name, wrapper)
    _call_what_the_class_says(Dispatcher)


_HAVE_VECTORCALL = 1 << 11
_WORDS_BEFORE_FLAGS = 21  # of PyTypeObject, in Python 3.11


def _call_what_the_class_says(cls: type) -> None:
    """Have `instance()` use a `__call__` that was replaced on a compiled class.

    In Python 3.11 a call goes past it, through a pointer in the instance, for as long as the class
    has this flag. Later versions take the flag away when `__call__` is assigned (CPython issue
    93274, pull request 95437); this does the same.
    """
    if sys.version_info >= (3, 12) or not cls.__flags__ & _HAVE_VECTORCALL:
        return
    offset = _WORDS_BEFORE_FLAGS * ctypes.sizeof(ctypes.c_void_p)
    flags = ctypes.c_ulong.from_address(id(cls) + offset)
    if flags.value == cls.__flags__:  # this is CPython, laid out as we know it
        flags.value &= ~_HAVE_VECTORCALL


def _bind_dispatch(method: Any = None, precedence: int = 0) -> tuple[Any, int]:
    return method, precedence


def _bind_register(f: Any, signature: Any = None, precedence: Any = 0) -> tuple[Any, Any, Any]:
    return f, signature, precedence


def existing(dispatcher: Any, method: Any) -> Function | None:
    """The function that a dispatcher will register `method` on; None if it will make a new one."""
    from plum import get_class, is_in_class

    namespace = dispatcher.functions
    if is_in_class(method):
        namespace = dispatcher.classes.get(get_class(method), {})
    return namespace.get(method.__name__)  # type: ignore[no-any-return]


def invoked(function: Function, method: Callable[..., Any], return_type: Any) -> Any:
    """What `Function.invoke` returns: the method, with its result converted."""
    from plum._function import _InvokedMethod

    return _InvokedMethod(function._f, method, return_type)


def signature(types: tuple[Any, ...]) -> Signature:
    """The target that `Function.invoke(*types)` resolves."""
    from plum import Signature as PlumSignature

    return PlumSignature(*(resolved_hint(hint) for hint in types))


# -- is this a plum that we know? ----------------------------------------------------------------


def version() -> str:
    """The version of plum-dispatch."""
    from importlib.metadata import version as version_of

    return version_of("plum-dispatch")


def unknown_names() -> list[str]:
    """The private names of plum that this module relies on and that this plum does not have."""
    import plum
    from plum import _function, _promotion, _resolver, _type

    wanted = {
        plum.Function: (
            "_instances", "_cache", "_pending", "_resolved", "_resolver", "_f", "_lock",
            "_owner_name", "_resolve_pending_registrations", "_register_one",
            "_register_multiple", "invoke", "resolve_method", "register", "clear_cache",
        ),
        plum.Dispatcher: ("_add_method", "__call__", "functions", "classes"),
        _function: ("_InvokedMethod",),
        _promotion: ("_convert", "_promotion_rule"),
        _resolver: ("Resolver",),
        _type: ("ResolvableType",),
    }  # fmt: skip
    probe = plum.Function(unknown_names)
    plum.Function._instances.remove(probe)
    return [
        f"{getattr(owner, '__name__', owner)}.{name}"
        for owner, names in wanted.items()
        for name in names
        if not hasattr(probe if owner is plum.Function else owner, name)
    ]


# -- which hints a class decides -----------------------------------------------------------------


def is_well_formed(hint: Any) -> bool:
    """Whether plum can check `hint` at all: `type[list[int]]` and `Literal[1.0]` always raise."""
    try:
        matches(object(), hint)
    except Exception:  # noqa: BLE001  whatever beartype raises, it raises for every value
        return False
    return True


def is_parametric_check(function: Any) -> bool:
    """Whether this `__instancecheck__` or `__subclasscheck__` belongs to plum's parametric classes.

    It compares `type(x)` with the class, type parameter by type parameter.
    """
    return getattr(function, "__module__", None) == "plum._parametric"
