"""How a variant runs, and what its first calls show: that it may be compiled, or why not.

A variant runs plainly once, then under its trace. What cannot be traced, what keeps a tracer and
what nothing compiled may return makes it run plainly for good; an error of execution is the user's.
DESIGN, section 6, has the rules.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax, _result, _tracing, _verify, _why
from plum_freeze._static import Plain
from plum_freeze._variant import Attempt, last

if TYPE_CHECKING:
    from plum_freeze._variant import Variant

log = logging.getLogger("plum_freeze")

PLAIN_CALLS = 1
"""How often each set of static values runs plainly before it is compiled.

A program that calls 100 methods of 3 to 10 operations once takes 1.5 s plainly and 43 s compiled;
one that calls each of them 20 times takes 53 s compiled at once, and 54 s compiled at the second
call [measured on a busy machine]. The first call also shows what cannot be compiled anyway.
"""

KEEPS_TRACER = "keeps a tracer: it, or a helper that it calls, stores what it is called with"


def run(variant: Variant, arrays: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a variant, and find out at its first calls whether it can be compiled."""
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
    last.attempt = None
    try:
        result = variant.jitted(*arrays)
        attempt = _attempt()
        new = attempt is not None and attempt.variant is variant
        if new and _jax.calls_back(variant.jitted, arrays):
            variant.finish = _wait
        if variant.finish is not None:
            result = variant.finish(result)
    except (Exception, _tracing.Stop) as error:
        why, ours = why_plain(variant, error, arrays)
        if not ours:
            raise
    else:
        if attempt is None or not new:
            return result
        if not attempt.is_kept:
            _accept(variant)
            if method.verify and not any(map(_jax.is_tracer, arrays)):
                _verify.compare(method, result, args, kwargs)
            return result
        why = KEEPS_TRACER
    finally:
        last.attempt = None  # it holds an error, whose frames hold the arguments
    return fall_back(variant, why, args, kwargs)


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


def _accept(variant: Variant) -> None:
    """The variant has been traced, and it is as good as the plain method."""
    method = variant.method
    if method.changed():  # it may have read both the old and the new value
        method.guard_again()
    elif not variant.ready:
        variant.ready = True
        method.compiled += 1
        log.debug("%s is compiled, variant %d", method.title, method.compiled)
        method.refresh()


def why_plain(variant: Variant, error: BaseException, arrays: Any) -> tuple[str | None, bool]:
    """Why a variant that raised runs plainly, or None for this call alone.

    The second is False where it is an error of execution: that is the user's (rule 6).
    """
    attempt = last.attempt
    if attempt is not None and attempt.variant is variant and attempt.error is error:
        text = (
            str(error)
            if isinstance(error, (Plain, _tracing.Stop))
            else _why.untraceable(error, variant.method.implementation)
        )
        return text, True
    # Run plainly, these raise what their author, or the first operation, raises.
    if _jax.is_from_callback(error) or any(map(_jax.is_deleted, arrays)):
        return None, True
    try:
        variant.jitted.lower(*arrays)
    except Exception as another:  # noqa: BLE001  tracing and lowering run code of all kinds
        # A traced Python scalar that no array can hold is no fault of the method.
        return None if isinstance(another, OverflowError) else _why.untraceable(another, None), True
    return None, False


def fall_back(
    variant: Variant, why: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run plainly what could not be compiled, and from now on, if that works."""
    __tracebackhide__ = True
    method = variant.method
    result = method.plain(*args, **kwargs)  # if it raises too, that is what the user sees
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


def _attempt() -> Attempt | None:
    return last.attempt
