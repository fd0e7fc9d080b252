"""Finishes before the failure."""
