"""A world: a fresh dispatcher, fresh classes and a module of their own, to which steps are applied."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import itertools
import sys
import types
from typing import TYPE_CHECKING, Any

import jax
import plum
from plum import _promotion

from . import vocabulary, ways
from .speed import fresh_jit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .library import Library

PACKAGE = "oracle_worlds"
FUNCTIONS = 4
_GLOBAL = (_promotion._convert, _promotion._promotion_rule, _promotion.convert, _promotion.promote)
_number = itertools.count()
_classes = compile(vocabulary.CLASSES, "<classes>", "exec", dont_inherit=True)


class World:
    """One of the worlds that a program runs in.

    `library` is `None` in the plain world. There plum's caches are cleared before each call, and
    every caller that JAX could keep a trace of is built anew.
    """

    def __init__(
        self, name: str, library: Library | None, *, jit: bool = True, on_late: str = "accept"
    ) -> None:
        self.name = name
        self.library = library
        self.jit = jit
        self.on_late = on_late
        self.dispatch = plum.Dispatcher()
        self.sealed: set[int] = set()
        self.late = 0  # registrations on a sealed function
        self._callers: dict[Any, Callable[..., Any]] = {}
        self._to_register_again: set[int] = set()
        self._rules = {f: list(f._resolved) + list(f._pending) for f in _GLOBAL}
        # Names of the same length in every world, since plum's messages are wrapped.
        self.module = types.ModuleType(f"{PACKAGE}.w{next(_number):06d}")
        self.foreign = types.ModuleType(f"{PACKAGE}.x{next(_number):06d}")
        self._open()

    @property
    def plain(self) -> bool:
        return self.library is None

    @property
    def keeps(self) -> bool:
        return self.library is not None and self.library.keeps_callers

    def _open(self) -> None:
        names = self.module.__dict__
        if PACKAGE not in sys.modules:
            sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
            sys.modules[PACKAGE].__path__ = []
        sys.modules[self.module.__name__] = self.module
        sys.modules[self.foreign.__name__] = self.foreign
        exec(_classes, names)
        names.update(vocabulary.ARRAYS, Positive=vocabulary.Positive)
        names.update(dispatch=self.dispatch, jitted=self.jitted)
        self.finder = _Finder(self.module.__name__)
        sys.meta_path.append(self.finder)

    def close(self) -> None:
        """Forget the world, and take back what it left in plum."""
        sys.meta_path.remove(self.finder)
        for name in [
            n for n in sys.modules if n.startswith((self.module.__name__, self.foreign.__name__))
        ]:
            del sys.modules[name]
        if not any(n.startswith(f"{PACKAGE}.") for n in sys.modules):
            sys.modules.pop(PACKAGE, None)
        mine = {id(f) for group in self.functions().values() for f in group}
        plum.Function._instances[:] = [f for f in plum.Function._instances if id(f) not in mine]
        for function, rules in self._rules.items():
            if len(function._resolved) + len(function._pending) != len(rules):
                # Plum's own way to start again from what was registered.
                function._pending, function._resolved = [], rules
                function.clear_cache(reregister=True)

    def leave_unwatched(self) -> None:
        """Take away what `install` put into the functions of the plain world: it is to be plain.

        Its registrations would move the epoch, and hide from us that a frozen world's do not.
        """
        if self.plain:
            for function in itertools.chain(*self.functions().values()):
                if type(function._cache) is not dict:
                    function._cache = {}

    # What steps use.

    def functions(self) -> dict[int, list[plum.Function]]:
        """The functions of this world by number. A method of several classes has several."""
        found = {int(name[1:]): [function] for name, function in self.dispatch.functions.items()}
        methods = [f for methods in self.dispatch.classes.values() for f in methods.values()]
        return {**found, FUNCTIONS: methods} if methods else found

    def functions_and_rules(self) -> list[plum.Function]:
        """The functions of this world, and plum's own for conversion and promotion."""
        return [*itertools.chain(*self.functions().values()), *_GLOBAL]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, plum knows of no functions of other worlds."""
        instances = plum.Function._instances
        before = list(instances)
        instances[:] = self.functions_and_rules()
        try:
            yield
        finally:
            instances[:] = before

    def function(self, index: int) -> Any:
        """What a program calls by this number: `f0`, or the method `f4` of an object."""
        if index == FUNCTIONS:
            return lambda *a, **kw: self.module.child.f4(*a, **kw)
        return self.dispatch.functions[f"f{index}"]

    def evaluate(self, text: str) -> Any:
        return eval(text, self.module.__dict__)

    def execute(self, source: str, number: int, *, foreign: bool = False) -> None:
        """Run the source of a registration, and remember its method by its number."""
        names = self.module.__dict__
        if foreign:  # the same names, seen from another module
            names = self.foreign.__dict__
            names.update({k: v for k, v in self.module.__dict__.items() if not k.startswith("__")})
        exec(compile(source, f"<m{number}>", "exec", dont_inherit=True), names)
        if foreign:
            self.module.__dict__.update(
                {k: v for k, v in names.items() if k in self.dispatch.functions}
            )

    def jitted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """`@jax.jit` as the author of a method may write it. In the plain world never stale."""
        return jax.jit(method) if self.keeps else _FreshJit(method)

    def refresh(self) -> None:
        """Empty plum's caches where they may be stale: they are no part of the contract."""
        for number, functions in self.functions().items():
            for function in functions if number not in self.sealed else ():
                function.clear_cache(reregister=False)
                if id(function) in self._to_register_again and self.settled(function):
                    function.clear_cache(reregister=True)
                    self._to_register_again.discard(id(function))
        if self.plain:
            for function in _GLOBAL:
                function.clear_cache(reregister=False)

    def settled(self, function: plum.Function) -> bool:
        """Resolve what is pending, and say whether that was possible.

        Plum's `clear_cache` puts what was resolved behind what is pending, so that an older method
        wins over a newer one with its signature. How much is pending is nobody's contract.
        """
        try:
            function._resolve_pending_registrations()
        except Exception:  # whatever plum raises, it raises it at the next call as well
            return False
        return True

    def something_else_changed(self, *, promises: bool = False) -> None:
        """Note that dispatch may have changed with no registration.

        A caller that was traced over a function that is not sealed is then stale in plain plum,
        and nobody promised otherwise.
        """
        if promises:
            self._to_register_again.update(
                id(function) for functions in self.functions().values() for function in functions
            )
        if not self.sealed >= self.functions().keys():
            self._callers.clear()

    def forget_callers(self) -> None:
        """Build every caller anew: a jit does not see that a global or an attribute changed."""
        self._callers.clear()

    def call(
        self, function: int, args: Sequence[str], kw: Sequence[tuple[str, str]], way: str
    ) -> Any:
        """The thunk of a call, and its arguments."""
        self.refresh()
        if way == "":
            values = tuple(self.evaluate(a) for a in args)
            keywords = {k: self.evaluate(v) for k, v in kw}
            target = self.function(function)
            return lambda: target(*values, **keywords), values
        traced = [i for i, a in enumerate(args) if a in vocabulary.TRACEABLE]
        values = tuple(self.evaluate(args[i]) for i in traced)
        caller = self.caller(function, tuple(args), tuple(kw), way)
        if not self.keeps and way in {*ways.JITTED, *ways.NESTED}:
            return lambda: fresh_jit(caller, *values), ()
        return lambda: caller(*values), ()

    def caller(
        self, function: int, args: tuple[str, ...], kw: tuple[tuple[str, str], ...], way: str
    ) -> Any:
        """A function of the traced arguments, built once if this world keeps its callers."""
        closed = tuple(None if a in vocabulary.TRACEABLE else a for a in args)
        # JAX takes 1 and True, and 0.0 and -0.0, for the same auxiliary data of a pytree.
        auxiliary = tuple(a for a in args if a.startswith(("Q", "W")))
        key = (function, closed, auxiliary, kw, way)
        if self.keeps and key in self._callers:
            return self._callers[key]
        target = self.function(function)
        constants = [None if a is None else self.evaluate(a) for a in closed]
        keywords = {k: self.evaluate(v) for k, v in kw}

        def call(*traced: Any) -> Any:
            rest = iter(traced)
            full = [next(rest) if a is None else c for a, c in zip(closed, constants, strict=True)]
            return target(*full, **keywords)

        if way in ways.NESTED:
            inner = self.caller(function, args, kw, "jit")
            caller = ways.NESTED[way](inner if self.keeps else jax.jit(inner))
        else:
            caller = {**ways.JITTED, **ways.EAGER}[way](call)
        if self.keeps:
            jits = way in ways.JITTED or way in ways.NESTED
            self._callers[key] = caller = jax.jit(caller) if jits else caller
        return caller

    def is_late(self, function: int) -> bool:
        return function in self.sealed


class _FreshJit:
    """`jax.jit(method)` that forgets everything after each call."""

    lower = None  # as a jitted function has it

    def __init__(self, method: Callable[..., Any]) -> None:
        functools.update_wrapper(self, method)

    def __call__(self, *args: Any, **kw: Any) -> Any:
        method = self.__wrapped__
        copy = types.FunctionType(
            method.__code__,
            method.__globals__,
            method.__name__,
            method.__defaults__,
            method.__closure__,
        )
        copy.__kwdefaults__ = method.__kwdefaults__
        return jax.jit(copy)(*args, **kw)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self  # pydoc takes it for a routine, as it takes a jitted function

    def __repr__(self) -> str:
        return f"<PjitFunction of {self.__wrapped__!r}>"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of one world whose source a program gave it."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.bodies: dict[str, Callable[[types.ModuleType], None]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in self.bodies:
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        self.bodies[module.__name__](module)
