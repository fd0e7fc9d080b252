"""Tests that pass plain and not frozen, each with the reason. There should be none."""

from __future__ import annotations

EXPECTED: dict[str, dict[str, str]] = {}
