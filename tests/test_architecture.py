"""Rules about the code itself: who may know what, and that a module fits in the head."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "plum_freeze"
MODULES = sorted(SOURCE.glob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_who_imports_what(path):
    tops = {name.partition(".")[0] for name in imports(path)}
    # What it takes to invalidate exactly is much, and goes together: it has files of its own.
    if path.name not in ("_jax.py", "_seam.py", "_selftest.py"):
        assert not tops & {"jax", "jaxlib", "jaxtyping"}
    private = [name for name in imports(path) if re.match(r"plum\._|plum\.\w+\._", name)]
    if path.name != "_plum.py":
        assert private == []


PRIVATE = r"\._(cache|pending|resolved|resolver|instances|owner_name|lock|register_one|convert)\b(?!\()"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_one_module_reads_plums_private_attributes(path):
    """Of functions, that is: `self._lock` is one's own."""
    found = re.findall(rf"\b(?:function|f|table\.function){PRIVATE}", path.read_text())
    assert path.name == "_plum.py" or found == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_fits_in_the_head(path):
    text = path.read_text()
    assert text.startswith('"""'), "the first line says what it is for"
    # An adapter holds all that is known of one library, however much that is.
    longer = {"_plum.py": 480}
    assert text.count("\n") <= longer.get(path.name, 340)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 62, node.name


def test_imports_run_one_way():
    """No module imports, at its top, one that imports it."""
    graph = {}
    for path in MODULES:
        if path.name == "__init__.py":
            continue
        tree = ast.parse(path.read_text())
        names = set()
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "plum_freeze":
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plum_freeze."):
                names.add(node.module.removeprefix("plum_freeze."))
        graph[path.stem] = names & {p.stem for p in MODULES}

    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " -> ".join([*open_, name])
        if name not in done:
            open_.append(name)
            for other in graph.get(name, ()):
                visit(other)
            open_.pop()
            done.add(name)

    for name in graph:
        visit(name)


def test_nothing_of_this_machine_is_in_the_code():
    root = SOURCE.parent
    for path in [*root.rglob("*.py"), *root.rglob("*.md"), *root.glob("*.toml")]:
        if ".venv" in path.parts or path == Path(__file__):
            continue
        found = re.findall(r"/(?:root|tmp|work|home)/\w+/", path.read_text())
        cells = [name for name in found if "ipykernel" in name]  # a name as Jupyter gives it
        assert found == cells, path
