"""Modules that put something else in their place."""
