"""Everything that touches plum's private names. No other module does.

plum is imported when it is first needed, because it imports rich and beartype.
"""

from __future__ import annotations

import functools
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union, get_args, get_origin

from plum_freeze._signatures import Entry as Entry
from plum_freeze._signatures import hint_text as hint_text
from plum_freeze._signatures import methods_of as methods_of
from plum_freeze._signatures import signature_text as signature_text
from plum_freeze._signatures import waits_for_a_name as waits_for_a_name
from plum_freeze._signatures import with_types_swapped as with_types_swapped

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


def lock_of(function: Function) -> Any:
    """The lock under which plum resolves registrations. It may be taken again by its holder."""
    return function._lock


def has_pending(function: Function) -> bool:
    """Whether registrations wait to be resolved at the next call."""
    return bool(function._pending)


def register_again(function: Function) -> None:
    """Have plum resolve every annotation again: promised types may have been delivered.

    Plum alone would put what it has resolved behind what still waits, and the older would win.
    """
    with function._lock:
        waiting = list(function._pending)
        function._pending = []
        function.clear_cache()
        function._pending.extend(waiting)


# -- methods and resolution ----------------------------------------------------------------------


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
        register_again(function)


def resolved_methods(function: Function) -> list[Method]:
    """The methods that plum has resolved so far. Resolves nothing."""
    return list(function._resolver.methods)


def resolve_pending(function: Function) -> None:
    """Resolve what waits, as plum does at the next call. Raises what plum raises."""
    function._resolve_pending_registrations()


def settled_methods(function: Function) -> list[Method]:
    """Resolve what waits, and give the methods, with no other thread clearing them in between.

    Raises:
        Exception: What plum raises where an annotation cannot be resolved.
    """
    with function._lock:  # reentrant; plum holds it too while it resolves
        function._resolve_pending_registrations()
        return list(function._resolver.methods)


def choose(function: Function, args: tuple[Any, ...]) -> Method:
    """The method for these arguments among the function's own, never from a cache.

    Raises:
        plum.NotFoundLookupError: No method applies (those of parent classes are not asked).
        plum.AmbiguousLookupError: Several apply and none is more specific.
    """
    function._resolve_pending_registrations()
    return function._resolver.resolve(args)


def chooser(function: Function) -> Callable[[tuple[Any, ...]], Method | None]:
    """As `choose`, with None where it raises; for calls that plum resolves each time."""
    from plum import AmbiguousLookupError, NotFoundLookupError

    def choose_one(args: tuple[Any, ...]) -> Method | None:
        """The method for these arguments."""
        if function._pending:
            function._resolve_pending_registrations()
        try:
            return function._resolver.resolve(args)
        except (NotFoundLookupError, AmbiguousLookupError):
            return None

    return choose_one


def choose_any(function: Function, args: Any) -> tuple[Callable[..., Any], Any]:
    """Implementation and return type, with parent classes asked; errors as from a plain call."""
    if not _resolve_method:
        keep_originals()
    return _resolve_method[0](function, args)  # type: ignore[no-any-return]


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


def promised_types(function: Function) -> list[Any]:
    """The promised types in signatures that were not delivered when plum resolved these."""
    found: list[Any] = []

    def look(hint: Any) -> None:
        if is_promise(hint) and hint not in found:
            found.append(hint)
        for argument in getattr(hint, "__args__", ()) or ():
            look(argument)

    for method in resolved_methods(function):
        for hint in (*method.signature.types, method.signature.varargs):
            look(hint)
    return found


def is_promise(hint: Any) -> bool:
    """Whether a hint is a promised type that was not delivered when plum resolved it."""
    from plum._type import ResolvableType

    return isinstance(hint, ResolvableType)


def is_settled(hint: Any) -> bool:
    """Whether a hint and every hint that equals it mean the same from now on.

    Promised types do not, until they are delivered; and `Annotated[int, 1]` is equal to
    `Annotated[int, True]`.
    """
    if hint is Any or hint is None or hint is ...:
        return True
    origin = get_origin(hint)
    if origin is None:
        return isinstance(hint, type) and not is_promise(hint)
    # `Annotated` is a class on Python 3.11 and 3.12.
    is_known = origin in (Union, UnionType) or isinstance(origin, type)
    return is_known and origin is not Annotated and all(map(is_settled, get_args(hint)))


def is_delivered(promise: Any) -> bool:
    """Whether a promised type has its type by now."""
    return promise.resolve() is not promise


def module_of_promise(promise: Any) -> str | None:
    """The module whose import delivers a `plum.ModuleType`; None for a `PromisedType`."""
    return getattr(promise, "_module", None)


# -- the ways in ---------------------------------------------------------------------------------


def ways_in() -> list[tuple[type, str, str]]:
    """Where registrations and questions pass by: class, name of its method, and what it is."""
    from plum import Dispatcher, Function
    from plum._type import ResolvableType

    return [
        (Dispatcher, "__call__", "dispatcher"),
        (Dispatcher, "_add_method", "multi"),
        (Function, "dispatch", "dispatch"),
        (Function, "_register_one", "dispatch"),
        (Function, "_register_multiple", "dispatch_multi"),
        (Function, "register", "register"),
        (Function, "invoke", "invoke"),
        (Function, "resolve_method", "resolve_method"),
        (ResolvableType, "deliver", "deliver"),
    ]


_resolve_method: list[Any] = []


def keep_originals() -> None:
    """Keep what the patches stand in front of."""
    from plum import Function

    _resolve_method.append(Function.resolve_method)


def overloads(method: Any) -> list[Any]:
    """The overloads that `plum.overload` has seen of a function."""
    from plum import get_overloads

    return list(get_overloads(method))


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
