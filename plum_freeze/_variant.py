"""One method and one set of static values: the function of nothing but arrays that is jitted."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

from plum_freeze import _apart, _guard, _jax, _kinds, _result, _screen, _tracing
from plum_freeze._static import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plum_freeze._guard import Guard
    from plum_freeze._jit import Compiled

NOT_LOOKED_INTO = frozenset({"jax", "jaxlib", "equinox"})
"""Functions of these packages are passed for what they compute, such as activations."""


class Variant:
    """A method and one set of static values.

    Attributes:
        jitted: The method as a function of the arrays of the call.
        plain: Why it runs plainly, if it does.
        calls: How often it ran plainly before it was compiled.
        ready: Whether it has run compiled.
        finish: What is to be done with results, if anything: put dicts in order, wait for errors.
        guards: What it reads: the method, functions that it is given, methods inlined in it.
        changed: Whether any of that is another object now. One closure, for the hot path.
        method: The method.
    """

    __slots__ = (
        "__weakref__",
        "calls",
        "changed",
        "finish",
        "given",
        "guards",
        "jitted",
        "method",
        "pinned",
        "plain",
        "ready",
    )

    def __init__(self, method: Compiled) -> None:
        self.method = method
        self.jitted: Any = None
        self.plain: str | None = None
        self.calls = 0
        self.ready = False
        self.finish: Callable[[Any], Any] | None = None
        self.guards: tuple[Guard, ...] = ()
        self.changed: Callable[[], bool] = method.guard.changed
        self.given: list[Any] = []  # functions; the guards hold them as well
        self.pinned: list[Any] = []  # weak references whose callbacks drop this variant
        self.depend((method.guard,))

    def depend(self, guards: Iterable[Guard]) -> None:
        """The variant has what these guards read baked in."""
        known = set(map(id, self.guards))
        new = [guard for guard in guards if id(guard) not in known]
        if new:
            self._guard_by(*self.guards, *new)

    def depend_instead(self, old: Guard, new: Guard) -> None:
        """The method is another function now, which reads the same values by these guards."""
        self._guard_by(new, *(guard for guard in self.guards if guard is not old))

    def _guard_by(self, *guards: Guard) -> None:
        self.guards = guards
        for guard in guards:
            guard.dependents.add(self)
        self.changed = (_guard.joined(*guards) if len(guards) > 1 else guards[0]).changed

    def look_into(self, value: Any) -> None:
        """The method is given this function, and may call it: it is screened like the method."""
        effect, guards = looked_into(value)
        self.plain = self.plain or effect
        self.depend(guards)
        if guards:
            self.given.append(value)

    def pin(self, value: Any, drop: Callable[[], object]) -> Callable[[], Any]:
        """A reference to a static value that its module holds; the variant goes when it does."""
        try:
            reference = weakref.ref(value, lambda _: drop())
        except TypeError:  # a member of an `IntEnum`: it lives as long as its class
            return lambda: value
        self.pinned.append(reference)
        return reference


def looked_into(value: Any) -> tuple[str | None, tuple[Guard, ...]]:
    """Why a method that is given this function must not be jitted, and what the function reads."""
    for function in _kinds.layers(value)[:1]:
        if _kinds.package_of(function) not in NOT_LOOKED_INTO:
            effect, guard = _screen.examine(function)
            why = None if effect is None else f"is given {function.__qualname__}, which {effect}"
            return why, (guard,)
    return None, ()


class Attempt:
    """One run of a method under its trace."""

    __slots__ = ("error", "trace")

    def __init__(self, trace: Any) -> None:
        self.trace = trace  # weak: it dies with the trace, unless somebody keeps a tracer of it
        self.error: BaseException | None = None  # what left the method

    @property
    def is_kept(self) -> bool:
        """Whether somebody still holds a tracer of the trace, which has ended."""
        if not self._has_tracers():
            return False
        gc.collect()  # 50 ms or more, but only where something in a cycle may hold it
        return self._has_tracers()

    def _has_tracers(self) -> bool:
        # JAX itself keeps the trace of a `custom_jvp` (each `relu` is one), but no tracer of it.
        trace = self.trace()
        return trace is not None and any(map(_jax.is_tracer, gc.get_referrers(trace)))


class Untraced(_tracing.Stop):
    """JAX is about to trace a variant for arrays of another kind, with nobody looking."""


class _Looking(threading.local):
    variant: Variant | None = None
    attempt: Attempt | None = None


looking = _Looking()
"""The variant whose traces are looked at on this thread, and the last of them that has ended."""


@contextlib.contextmanager
def looking_at(variant: Variant) -> Iterator[None]:
    """Whoever runs the variant here looks at its traces before they are run."""
    before = looking.variant, looking.attempt
    looking.variant, looking.attempt = variant, None
    try:
        yield
    finally:  # an attempt holds an error, whose frames hold the arguments
        looking.variant, looking.attempt = before


def jitted(
    method: Compiled,
    variant: Variant,
    args: list[_apart.Build],
    kwargs: dict[str, _apart.Build],
) -> Any:
    """The method as a jitted function of nothing but arrays.

    Args:
        method: The method.
        variant: What is told of each trace.
        args: What puts the positional arguments together from arrays.
        kwargs: The same by name.

    What is returned raises what the method raises, and `Plain` or `Stop` out of a trace that must
    not be kept. A trace that nobody looks at raises `Untraced` before it begins.
    """

    def body(*leaves: Any) -> Any:
        """What JAX traces: the method, with its arguments put together from arrays.

        Raises:
            Plain: The trace must not be kept.
            Untraced: Nobody looks at it.
        """
        arrays = iter(leaves)
        put_args = [put(arrays) for put in args]
        put_kwargs = {name: put(arrays) for name, put in kwargs.items()}
        tracer = next(filter(_jax.is_tracer, leaves), None)
        if tracer is None:  # `jax.disable_jit`, or JAX looks for the origin of a NaN
            return method.plain(*put_args, **put_kwargs)
        if looking.variant is not variant:
            raise Untraced
        attempt = Attempt(_jax.trace_of([tracer]))
        frame = _tracing.push()
        del tracer, arrays, leaves  # `jax.checking_leaks` would find them here
        try:
            result = method.implementation(*put_args, **put_kwargs)
            if method.convert is not None:
                result = method.convert.traced(result)
            result, unordered = _result.checked(result, put_args, put_kwargs)
            if frame.effect is not None:
                raise Plain(frame.effect)  # noqa: TRY301
        except BaseException as error:
            attempt.error = error
            raise
        finally:
            _tracing.pop()
            looking.attempt = attempt
        if unordered and variant.finish is None:
            variant.finish = _result.unwrap
        variant.depend(frame.guards.values())
        return result

    body.__name__ = getattr(method.implementation, "__name__", "method")
    body.__qualname__ = getattr(method.implementation, "__qualname__", "method")
    vars(body)["plum_freeze_method"] = method.implementation  # which function `body` stands for
    return _jax.jit(body)
