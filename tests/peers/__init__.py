"""The test suites of packages that are built on plum, plain and frozen: `python -m tests.peers`."""
