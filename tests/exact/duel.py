"""Run random programs, change decisions between calls and inside traces, and compare."""

from __future__ import annotations

import os
import random
import traceback
from collections import Counter
from typing import Any

import jax
import numpy as np

from . import leaves, nodes

counts: Counter[str] = Counter()
STEPS = 300  # of one program


class Stale(AssertionError):
    """A call gave something else than what it has to give now."""


class Refused(Exception):
    """JAX does not take the program, whatever was traced before."""


class Program:
    """Some leaves, and nodes over them.

    Args:
        seed: Of all choices.
        modes: The modes of nodes to choose from.
        kinds: The kinds of leaves to choose from.
    """

    def __init__(self, seed: int, modes: Any = None, kinds: Any = None) -> None:
        self.seed = seed
        rng = self.rng = random.Random(seed)
        self.leaves = [rng.choice(kinds or leaves.KINDS)(rng) for _ in range(4)]
        self.history: list[str] = [f"leaves: {', '.join(type(x).__name__ for x in self.leaves)}"]
        of_leaves = [nodes.leaf_node(leaf) for leaf in self.leaves]
        self.nodes: list[nodes.Node] = []
        while len(self.nodes) < 7:
            parts = [rng.choice(of_leaves + self.nodes) for _ in range(rng.randint(1, 2))]
            node = nodes.make(rng.choice(modes or list(nodes.MODES)), parts, rng.choice(self.leaves))
            if node is not None and abs(node.model()[0]) < 2.0**40:
                names = [p.mode if p in of_leaves else f"n{self.nodes.index(p)}" for p in parts]
                self.history.append(f"n{len(self.nodes)} = {node.mode} of {', '.join(names)}")
                self.nodes.append(node)

    def step(self) -> None:
        """Change a decision, or call a node, maybe by a jit of its own."""
        rng = self.rng
        if rng.random() < 0.06:
            self.change()
            return
        if rng.random() < 0.015:
            self.change_while_it_is_traced()
            return
        number = rng.randrange(len(self.nodes))
        node, way = self.nodes[number], ""
        call = node.call
        if rng.random() < 0.04:
            call, way = jax.jit(call), "a new jit of "
        self.history.append(f"{way}n{number}")
        self.compare(call, node.model()[0])
        counts[node.mode] += 1

    def compare(self, call: Any, factor: float) -> None:
        x = np.arange(1.0, self.rng.choice([3.0, 4.0]), dtype=np.float32)
        try:
            got = np.asarray(call(jax.numpy.asarray(x)))
        except Exception as error:
            jax.clear_caches()  # would it work if nothing had been traced before?
            if _is_of_jax(error) and _raises(type(error), call, x):
                raise Refused(f"seed {self.seed}: {error}") from error
            raise
        want = np.float32(factor) * x
        counts["calls"] += 1
        if not np.array_equal(got, want):
            text = "\n".join(self.history)
            raise Stale(f"seed {self.seed}: got {got}, expected {want}\n{text}")

    def change(self) -> None:
        leaf = self.rng.choice(self.leaves)
        factor = self.rng.choice([0.5, 1.0, 2.0, 4.0])
        self.history.append(f"{type(leaf).__name__} {self.leaves.index(leaf)} becomes {factor}")
        leaf.change(factor)
        counts["changes"] += 1

    def change_while_it_is_traced(self) -> None:
        """The lines before a change have the old answer, those after it the new one; once."""
        leaf = self.rng.choice(self.leaves)
        old, new = leaf.factor, self.rng.choice([0.5, 1.0, 2.0, 4.0])
        self.history.append(f"{type(leaf).__name__} {self.leaves.index(leaf)}: {new} in a trace")
        done: list[None] = []

        def body(x):
            x = leaf(x)
            if not done:
                done.append(None)
                leaf.change(new)
            return leaf(x)

        call = jax.jit(body)
        self.compare(call, old * new)
        self.compare(call, new * new)
        counts["changes in a trace"] += 1


def _raises(kind: type[BaseException], call: Any, x: Any) -> bool:
    try:
        call(jax.numpy.asarray(x))
    except kind:
        return True
    return False


def _is_of_jax(error: BaseException) -> bool:
    """Whether code of JAX has raised it."""
    return f"{os.sep}jax{os.sep}" in traceback.extract_tb(error.__traceback__)[-1].filename


def run(seed: int, calls: int, *, modes: Any = None, kinds: Any = None) -> None:
    """Programs from this seed on, until there were so many calls.

    Raises:
        Stale: A call gave a value that was right before a change, or never.
    """
    until = counts["calls"] + calls
    while counts["calls"] < until:
        program = Program(seed, modes, kinds)
        seed += 1
        counts["programs"] += 1
        try:
            for _ in range(STEPS):
                program.step()
        except Refused:
            counts["refused"] += 1
            if counts["refused"] > max(3, counts["programs"] // 4):
                raise
