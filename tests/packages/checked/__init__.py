"""For the hooks of type checkers: `wrong` breaks its annotation, and a checker says so."""

from . import core as core
