"""The namespace of the package's functions."""

from plum import Dispatcher

dispatch = Dispatcher()
