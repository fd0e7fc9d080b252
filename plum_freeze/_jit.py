"""How a resolved method runs: compiled where that gives the same result, plainly where it may not.

A `Compiled` is one method. Its calls are told apart by their static values (see `_static.py`); each
such *variant* has one `jax.jit` of its own for good, which takes the arrays of the call and nothing
else. DESIGN, section 6, has the rules; the numbers in the comments are theirs.
"""

from __future__ import annotations

import gc
import threading
import traceback
import weakref
from collections import Counter
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax, _marks, _result, _screen, _static, _tracing, _verify
from plum_freeze._convert import conversion
from plum_freeze._static import Plain, Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST_VARIANTS = 16
"""Sets of static values that a method is compiled for (rule 7)."""

TOO_MANY = (
    "more than {limit} sets of static values; argument {name} varies: if it may be traced, write"
    " @plum_freeze.traced({name!r}) under @dispatch"
)


KEEPS_TRACER = "keeps a tracer: it, or a helper that it calls, stores what it is called with"


class Variant:
    """A method and one set of static values."""

    __slots__ = ("changed", "jitted", "pinned", "plain", "ready")

    def __init__(self) -> None:
        self.jitted: Any = None
        self.plain: str | None = None  # why it runs plainly
        self.ready = False  # whether it has run compiled
        self.changed: tuple[Callable[[], bool], ...] = ()  # of the methods inlined in it
        self.pinned: list[Any] = []  # weak references whose callbacks drop this variant


class _Attempt:
    """One run of a method under its trace."""

    __slots__ = ("error", "trace", "variant")

    def __init__(self, variant: Variant, trace: Any) -> None:
        self.variant = variant
        self.trace = trace  # weak: it dies with the trace, unless somebody keeps a tracer of it
        self.error: BaseException | None = None  # what left the method


class _Last(threading.local):
    attempt: _Attempt | None = None  # the last one that ended on this thread


_last = _Last()


class Compiled:
    """One method of a sealed function.

    Attributes:
        reasons: Why calls ran plainly, with the number of variants, for the report.
        compiled: How many variants run compiled.
    """

    def __init__(
        self,
        implementation: Callable[..., Any],
        return_type: Any,
        *,
        jit: bool,
        verify: bool = False,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self.implementation = implementation
        self.return_type = return_type
        self.convert = conversion(return_type)
        self.verify = verify
        self.refresh = refresh
        self.reasons: Counter[str] = Counter()
        self.compiled = 0
        self.variants: dict[Hashable, Variant] = {}
        self.static_values: list[Hashable] = []
        self.marks = _marks.marks_of(implementation)
        self.effect, self.guard = _screen.examine(implementation)
        self.changed = self.guard.check
        self.jits = jit and self.why_never() is None

    def why_never(self) -> str | None:
        """Why the method is not jitted, whatever it is called with."""
        if self.marks.eager:
            return "marked with @eager"
        if _jax.is_jitted(self.implementation):
            return "is jitted already"
        return None if self.effect is None else str(self.effect)

    # -- plainly ---------------------------------------------------------------------------------

    def plain(self, *args: Any, **kwargs: Any) -> Any:
        """Run the method as its author wrote it."""
        __tracebackhide__ = True
        if _tracing.anywhere:
            self.note()
        result = self.implementation(*args, **kwargs)
        return result if self.convert is None else self.convert(result)

    def note(self) -> None:
        """The method is about to be inlined in the trace that is open on this thread, if one is."""
        frame = _tracing.current()
        if frame is None:
            return
        if self.marks.eager or self.effect:
            name = getattr(self.implementation, "__qualname__", "a method")
            frame.effect = f"calls {name}, which {self.effect or 'is marked with @eager'}"
        frame.changed[id(self)] = self.changed

    # -- compiled --------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the method for any arguments."""
        __tracebackhide__ = True
        if not self.jits:
            return self.plain(*args, **kwargs)
        if self.changed():
            self.guard_again()
        arrays: list[Any] = []
        try:
            key = self.key(args, kwargs, arrays)
        except Traced:  # rule 8
            return self.plain(*args, **kwargs)
        except Plain as plain:
            self.reasons[str(plain)] += 1
            return self.plain(*args, **kwargs)
        if not any(map(_jax.is_array, arrays)):  # rule 1
            return self.plain(*args, **kwargs)
        variant = self.variants.get(key)
        if variant is None:
            variant = self.new_variant(key, args, kwargs)
        return self.run(variant, arrays, args, kwargs)

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Any]) -> Hashable:
        """What tells this call's variant; its arrays go to `arrays`."""
        traced = self.marks.traced
        parts: list[Hashable] = []
        names = self.marks.positional
        for i, value in enumerate(args):
            name = names[i] if i < len(names) else self.marks.varargs
            try:
                parts.append(_static.take_apart(value, arrays, traced=name in traced))
            except Traced:
                raise
            except Plain as plain:
                raise Plain(f"argument {i + 1} ({plain})") from None
        for name, value in kwargs.items():
            try:
                parts.append((name, _static.take_apart(value, arrays, traced=name in traced)))
            except Traced:
                raise
            except Plain as plain:
                raise Plain(f"argument {name} ({plain})") from None
        return tuple(parts)

    def new_variant(self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        """Prepare a set of static values that was not seen before; nothing is traced yet."""
        variant = Variant()

        def weakly(value: Any) -> Callable[[], Any]:
            drop = lambda _: self.variants.pop(key, None)  # noqa: E731
            reference = weakref.ref(value, drop)
            variant.pinned.append(reference)
            if isinstance(value, FunctionType):
                effect, guard = _screen.examine(value)
                variant.changed += (guard.check,)
                if effect is not None:
                    variant.plain = f"is given {value.__qualname__}, which {effect}"
            return reference

        traced, names = self.marks.traced, self.marks.positional
        put_args = [
            _static.putter(
                v, weakly, traced=(names[i] if i < len(names) else self.marks.varargs) in traced
            )
            for i, v in enumerate(args)
        ]
        put_kwargs = {
            k: _static.putter(v, weakly, traced=k in traced) for k, v in kwargs.items()
        }
        if _has_static_values(key):
            if len(self.static_values) >= MOST_VARIANTS:
                name = _varying(self.static_values, self.marks.positional)
                self.reasons[TOO_MANY.format(limit=MOST_VARIANTS, name=name)] += 1
                variant.plain = "too many static values"
                return variant  # not kept: it would be one more for each call
            self.static_values.append(key)
        variant.jitted = self.jit(variant, put_args, put_kwargs)
        if variant.plain:
            self.reasons[variant.plain] += 1
        return self.variants.setdefault(key, variant)

    def jit(self, variant: Variant, put_args: list[Any], put_kwargs: dict[str, Any]) -> Any:
        """The method as a function of nothing but arrays."""

        def body(*leaves: Any) -> Any:
            tracers = [leaf for leaf in leaves if _jax.is_tracer(leaf)]
            arrays = iter(leaves)
            args = [put(arrays) for put in put_args]
            kwargs = {name: put(arrays) for name, put in put_kwargs.items()}
            if not tracers:  # jax.disable_jit()
                return self.plain(*args, **kwargs)
            attempt, frame = _Attempt(variant, _jax.trace_of(tracers)), _tracing.push()
            try:
                result = self.implementation(*args, **kwargs)
                if self.convert is not None:
                    result = self.convert(result)
                result = _result.checked(result, args, kwargs)
                if frame.effect is not None:
                    raise Plain(frame.effect)  # noqa: TRY301
            except BaseException as error:
                attempt.error = error
                raise
            finally:
                _tracing.pop()
                _last.attempt = attempt
            self.depend(variant, frame)
            return result

        body.__name__ = getattr(self.implementation, "__name__", "method")
        body.__qualname__ = getattr(self.implementation, "__qualname__", "method")
        return _jax.jit(body)

    def run(
        self, variant: Variant, arrays: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a variant, and find out at its first call whether it can be compiled."""
        __tracebackhide__ = True
        if variant.plain is not None:
            return self.plain(*args, **kwargs)
        if any([changed() for changed in variant.changed]):
            self.guard_again()
            return self.call(args, kwargs)
        if _tracing.anywhere:
            self.note()
            frame = _tracing.current()
            if frame is not None:
                frame.changed.update((id(c), c) for c in variant.changed)
        _last.attempt = None
        try:
            result = variant.jitted(*arrays)
        except Exception as error:
            why = self.why_plain(variant, error, arrays)
        else:
            attempt = _last.attempt
            if attempt is None or attempt.variant is not variant:
                return result
            if not _is_kept(attempt):
                self.compiled += 1
                variant.ready = True
                self.refresh()
                if self.verify:
                    _verify.compare(self, result, args, kwargs)
                return result
            why = KEEPS_TRACER
        return self.fall_back(variant, why, args, kwargs)

    def why_plain(self, variant: Variant, error: Exception, arrays: Any) -> str | None:
        """Why a variant that raised runs plainly; None for this call alone.

        Raises:
            Exception: The same, where it is an error of execution: that is the user's (rule 6).
        """
        attempt = _last.attempt
        if attempt is not None and attempt.variant is variant and attempt.error is error:
            return str(error) if isinstance(error, Plain) else _reason(error, self.implementation)
        try:
            variant.jitted.lower(*arrays)
        except Exception as another:
            # A traced Python scalar that no array can hold is no fault of the method.
            return None if isinstance(another, OverflowError) else _reason(another, None)
        raise error

    def fall_back(
        self, variant: Variant, why: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run plainly what could not be compiled, and from now on, if that works."""
        __tracebackhide__ = True
        result = self.plain(*args, **kwargs)  # if it raises too, that is what the user sees
        if why is not None and variant.plain is None:
            variant.plain = why
            self.reasons[why] += 1
            self.refresh()
        return result

    def depend(self, variant: Variant, frame: _tracing.Frame) -> None:
        """The variant has methods inlined in it, whose globals it reads as well."""
        known = {id(check) for check in variant.changed}
        new = tuple(check for check in frame.changed.values() if id(check) not in known)
        if new:
            variant.changed += new
            self.refresh()

    def guard_again(self) -> None:
        """Something that the method reads has changed: everything is traced again (rule 9)."""
        self.effect, self.guard = _screen.examine(self.implementation)
        self.changed = self.guard.check
        self.variants.clear()
        self.static_values.clear()
        self.jits = self.effect is None
        self.refresh()

    # -- the hot path ----------------------------------------------------------------------------

    def runner(self, types: tuple[type, ...]) -> Callable[..., Any]:
        """The fastest way to run calls with positional arguments of exactly these types."""
        if not self.jits:
            return self._plain_runner()
        if types and not self.verify and all(map(_jax.is_array_class, types)):
            variant = self.variants.get((_static.ARRAY,) * len(types))
            if variant is not None and variant.ready and variant.plain is None:
                return self._array_runner(variant)

        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return self.call(args, kwargs)

        return run

    def _plain_runner(self) -> Callable[..., Any]:
        if self.effect is None and not self.marks.eager and self._reads_nothing():
            if self.convert is None:
                return self.implementation  # nothing of ours is in its way
            implementation, convert = self.implementation, self.convert
            unchanged = convert.unchanged

            def converted(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                result = implementation(*args, **kwargs)
                return result if id(type(result)) in unchanged else convert(result)

            return converted
        return self.plain

    def _reads_nothing(self) -> bool:
        """Whether the method depends on nothing but its own code and defaults."""
        return all(read.holder is self.implementation for read in self.guard.reads)

    def _array_runner(self, variant: Variant) -> Callable[..., Any]:
        """For calls with arrays alone: one check of what the method reads, and jit's own C++."""
        jitted, anywhere, changed = variant.jitted, _tracing.anywhere, self.changed
        if variant.changed:
            changed = _any_of((changed, *variant.changed))

        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if kwargs or anywhere or changed():
                return self.call(args, kwargs)
            try:
                return jitted(*args)
            except Exception as error:
                why = self.why_plain(variant, error, args)
            return self.fall_back(variant, why, args, kwargs)

        return run


def _any_of(checks: tuple[Callable[[], bool], ...]) -> Callable[[], bool]:
    def changed() -> bool:
        for check in checks:  # noqa: SIM110 (a generator costs 200 ns, and this runs at each call)
            if check():
                return True
        return False

    return changed


def _is_kept(attempt: _Attempt) -> bool:
    """Whether somebody still holds a tracer of a trace that has ended."""
    if attempt.trace() is None:
        return False
    gc.collect()  # 50 ms or more, but only where something in a cycle may hold it
    return attempt.trace() is not None


def _has_static_values(key: Hashable) -> bool:
    """Whether there is anything but arrays and containers in a key of `Compiled.key`."""
    if isinstance(key, tuple):
        if len(key) == 2 and key[0] in (tuple, list):
            return _has_static_values(key[1])
        return any(map(_has_static_values, key))
    return key != _static.ARRAY


def _varying(keys: list[Hashable], names: tuple[str, ...]) -> str:
    """The name of the argument that differs most among the keys of variants."""
    columns = zip(*(key for key in keys if isinstance(key, tuple)), strict=False)
    counts = [len(set(column)) for column in columns]
    position = counts.index(max(counts)) if counts else 0
    return names[position] if position < len(names) else f"number {position + 1}"


def _reason(error: BaseException, function: Any) -> str:
    """Why a method could not be traced, with the line of it where that showed."""
    code = getattr(function, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename and frame.name == code.co_name
    ]
    where = f" ({Path(code.co_filename).name}:{lines[-1]})" if code is not None and lines else ""
    if _jax.is_branching(error):
        return f"branches on a traced value{where}"
    text = str(error).strip().splitlines() or [""]
    return f"cannot be compiled: {type(error).__name__}: {text[0][:80]}{where}"
