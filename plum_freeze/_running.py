"""How a variant runs, and what its first calls show: that it may be compiled, or why not.

A variant runs plainly once, then under its trace. What cannot be traced, what keeps a tracer and
what nothing compiled may return makes it run plainly for good; an error of execution is the user's.
DESIGN, section 6, has the rules.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax, _result, _tracing, _verify, _why
from plum_freeze._static import Plain
from plum_freeze._variant import Untraced, looking, looking_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plum_freeze._variant import Variant

log = logging.getLogger("plum_freeze")

PLAIN_CALLS = 1
"""How often each set of static values runs plainly before it is compiled.

A program that calls 100 methods of 3 to 10 operations once takes 1.5 s plainly and 43 s compiled;
one that calls each of them 20 times takes 53 s compiled at once, and 54 s compiled at the second
call [measured on a busy machine]. The first call also shows what cannot be compiled anyway.
"""

KEEPS_TRACER = "keeps a tracer: it, or a helper that it calls, stores what it is called with"


def run(
    variant: Variant, arrays: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a variant, and find out whether it can be compiled."""
    __tracebackhide__ = True
    method = variant.method
    if variant.plain is not None or _tracing.current() is not None:
        return method.plain(*args, **kwargs)
    if variant.changed():
        method.guard_again()
        return method.call(args, kwargs)
    if not variant.ready:
        if _jax.jit_is_disabled():
            return method.plain(*args, **kwargs)
        if variant.calls < PLAIN_CALLS and not method.verify:
            return _first(variant, args, kwargs)
    try:
        result = _compiled(variant, arrays)
    except (Exception, _tracing.Stop) as error:
        instead = instead_of(variant, error, arrays)
        if instead is None:
            raise
    else:
        return result if variant.ready else _accept(variant, result, arrays, args, kwargs)
    return instead(variant, arrays, args, kwargs)


def _compiled(variant: Variant, arrays: Sequence[Any]) -> Any:
    result = variant.jitted(*arrays)
    return result if variant.finish is None else variant.finish(result)


def _first(variant: Variant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a variant plainly, before it is worth compiling."""
    __tracebackhide__ = True
    method = variant.method
    result = method.plain(*args, **kwargs)
    variant.calls += 1
    try:
        _result.checked(result, args, kwargs)
    except Plain as plain:
        _refuse(variant, str(plain))
    return result


def instead_of(
    variant: Variant, error: BaseException, arrays: Sequence[Any]
) -> Callable[..., Any] | None:
    """What runs a call whose variant has raised this; None where the error is the user's."""
    if isinstance(error, Untraced):
        return _trace
    why, ours = _why_plain(variant, error, arrays)
    return functools.partial(_fall_back, why=why) if ours else None


def _trace(
    variant: Variant, arrays: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Trace a variant for arrays of another kind, look at the trace, and run it."""
    __tracebackhide__ = True
    with looking_at(variant):
        try:
            why = _look(variant, variant.jitted.trace(*arrays))
            if why is None:
                result = _compiled(variant, arrays)
        except (Exception, _tracing.Stop) as error:
            why, ours = _why_plain(variant, error, arrays)
            if not ours:
                raise
        else:
            if why is None:
                return _accept(variant, result, arrays, args, kwargs)
            _refuse(variant, why)
    return _fall_back(variant, arrays, args, kwargs, why=why)


def _look(variant: Variant, traced: Any) -> str | None:
    """Why a variant must not run as it was traced; what is to be done with its results if it may.

    Run plainly, a callback has come back when the call returns. Compiled, it comes late, and so
    does what it raises. One that is pure, or prints, can be waited for.
    """
    if looking.attempt is not None and looking.attempt.is_kept:
        return KEEPS_TRACER
    called = _jax.callbacks(traced)
    late = called - {"pure_callback", "debug_print"}
    if late:
        return f"calls Python by {' and '.join(sorted(late))}, which would come late"
    if "debug_print" in called:
        variant.finish = _wait_for_prints
    elif called and variant.finish is not _wait_for_prints:
        variant.finish = _wait
    return None


def _accept(
    variant: Variant,
    result: Any,
    arrays: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The variant was traced and has run, and it is as good as the plain method: the result."""
    method = variant.method
    if method.changed():  # it may have read both the old and the new value
        method.guard_again()
    elif not variant.ready:
        variant.ready = True
        method.compiled += 1
        log.debug("%s is compiled, variant %d", method.title, method.compiled)
        method.refresh()
    if method.verify and not any(map(_jax.is_tracer, arrays)):
        _verify.compare(method, result, args, kwargs)
    return result


def _why_plain(
    variant: Variant, error: BaseException, arrays: Sequence[Any]
) -> tuple[str | None, bool]:
    """Why a variant that raised runs plainly, or None for this call alone.

    The second is False where it is an error of execution: that is the user's (rule 6).
    """
    attempt = looking.attempt
    if attempt is not None and attempt.error is error:
        text = (
            str(error)
            if isinstance(error, (Plain, _tracing.Stop))
            else _why.untraceable(error, variant.method.implementation)
        )
        return text, True
    # Run plainly, these raise what their author, or the first operation, raises.
    if _is_from_callback(error) or any(map(_jax.is_deleted, arrays)):
        return None, True
    try:
        with looking_at(variant):
            variant.jitted.lower(*arrays)
    except Exception as another:  # noqa: BLE001  tracing and lowering run code of all kinds
        # A traced Python scalar that no array can hold is no fault of the method.
        return None if isinstance(another, OverflowError) else _why.untraceable(another, None), True
    return None, False


def _is_from_callback(error: BaseException) -> bool:
    """Whether Python code raised it that compiled code called; JAX gives it another type."""
    text = str(error)
    return "Callback error" in text or "_EquinoxRuntimeError: " in text


def _fall_back(
    variant: Variant,
    _: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    why: str | None,
) -> Any:
    """Run plainly what could not be compiled, and from now on, if that works."""
    __tracebackhide__ = True
    result = variant.method.plain(*args, **kwargs)  # if it raises too, the user sees that
    if why is not None:
        _refuse(variant, why)
    return result


def _refuse(variant: Variant, why: str) -> None:
    """The variant runs plainly from now on."""
    if variant.plain is None:
        method = variant.method
        variant.plain = why
        method.reasons[why] += 1
        method.fast.clear()
        log.info("%s runs plainly: %s", method.title, why)
        method.refresh()


def _wait(result: Any) -> Any:
    """The result, once it is there: plainly, what a callback raises leaves the call itself."""
    return _jax.wait(_result.unwrap(result))


def _wait_for_prints(result: Any) -> Any:
    """The same, once all is printed: plainly, that comes before what the caller prints next."""
    result = _wait(result)
    _jax.wait_for_effects()
    return result
