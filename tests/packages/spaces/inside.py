"""A module in a namespace package."""
