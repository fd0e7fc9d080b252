"""What to do about a method that runs plainly, in words. Results are right either way."""

from __future__ import annotations

import re

# The first pattern that is found in the reason decides.
_REMEDIES = (
    (
        r"keeps more than its pytree shows",
        "make all of its state fields of the pytree, or mark the method with @eager",
    ),
    (
        r"^argument .*\(numpy\.",
        "pass a JAX array (jnp.asarray); numpy's stay as they are, jit would cut 64 bits to 32",
    ),
    (
        r"^argument .*static field",
        "make the static field immutable and comparable (a tuple, a string, a frozen dataclass)",
    ),
    (
        r"^argument .*\(.*(function|method|lambda)",
        "pass a function that lives in a module under its own name, not a lambda or a closure",
    ),
    (
        r"^argument ",
        "pass arrays or immutable values; make your class a pytree or a frozen dataclass",
    ),
    (r"more than \d+ sets", ""),  # the reason itself says what to write
    (r"returns an? .*argument", "nothing to gain: compiled code could only copy it"),
    (
        r"returns ",
        "return arrays only, if it is worth compiling; move the rest to the caller",
    ),
    (
        r"branches on",
        "use jnp.where or jax.lax.cond; or jit the part without the branch in a method of its own",
    ),
    (
        r"keeps a tracer",
        "return what it computes and keep it outside of the method, or mark it with @eager",
    ),
    (
        r"^(calls|is given) ",
        "take the effect out of what it calls or is given, or mark it with @eager",
    ),
    (
        r"cannot be compiled",
        "write it with jax.numpy and jax.lax, or mark it with @eager so that it is not tried",
    ),
)


def remedy(reason: str) -> str:
    """What the author of a method can do about this reason; "" if there is nothing to do."""
    for pattern, words in _REMEDIES:
        if re.search(pattern, reason):
            return words
    return ""
