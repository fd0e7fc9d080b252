"""Fields on grids: a small package that is frozen, as its users would import it.

`install()` stands at the top, so that the registrations of the modules below are recorded, and
`freeze()` after the imports. `fieldlib.spectral` is imported when it is first used; what it
registers is late, and right all the same.
"""

import importlib

import plum_freeze

plum_freeze.install()

from fieldlib._fields import Field, Grid, Wave, norm, scale  # noqa: E402
from fieldlib._operators import Smoother, apply, laplacian  # noqa: E402
from fieldlib._units import Meter, Second, strip, unit_of  # noqa: E402

__all__ = [
    "Field", "Grid", "Meter", "Second", "Smoother", "Wave", "apply", "laplacian", "norm", "scale",
    "strip", "unit_of",
]  # fmt: skip

plum_freeze.freeze()


def __getattr__(name):
    if name == "spectral":
        return importlib.import_module("fieldlib.spectral")
    raise AttributeError(name)
