"""A package that imports its submodules, the usual way."""

from . import core as core
from . import fields as fields
