"""Tests that pass plain and not frozen, each with the reason. Nothing else may differ."""

from __future__ import annotations

EXPECTED: dict[str, dict[str, str]] = {
    "quax": {
        "tests.unit.test_jax_compat::test_convert_resolution_is_cached": (
            "asserts that plum.convert leaves its answer in the private dict plum._promotion._convert._cache;"
            " plum_freeze keeps it beside that dict"
        ),
    },
}
