"""What the sources have to keep: which folder may know which, and what may not be written."""

import ast
import re
from pathlib import Path

import pytest

import wavesim
from wavesim.spec import Spec

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust/core/src"
BINDING = ROOT / "rust/python/src"
PACKAGE = ROOT / "python/wavesim"

# What each part of the core may use. `error` and `ids` are for all.
CORE_USES = {
    "engine": set(),
    "device": set(),
    "workload": {"engine"},
    "records": {"engine"},
    "strategy": {"workload", "engine", "device"},
    "gpu": {"engine", "device", "workload", "records", "simulate"},  # of simulate its options
    "simulate": {"gpu", "device", "workload", "records"},
}

# The package's parts in layers: each may load, at import, what stands above it.
LAYERS = [
    {"errors", "scalars", "text", "_wavesim"},
    {"spec"},
    {"devices", "durations"},
    {"tiles", "streaming"},
    {"access", "warps", "wire"},
    {"workload"},
    {"frames", "measured"},
    {"run"},
    {"simulate"},
    {"io", "changes", "plots", "summary", "compare", "busy"},
    {"diagnose", "analyze", "validate"},
    {"report"},
    {"cli"},
]


def rust_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.rs"))


def outside_tests(text: str) -> str:
    return text.partition("#[cfg(test)]")[0]


@pytest.mark.parametrize("part", sorted(CORE_USES))
def test_a_part_of_the_core_uses_only_what_it_may(part):
    files = rust_files(CORE / part) + [path for path in [CORE / f"{part}.rs"] if path.exists()]
    used = {}
    for path in files:
        code = re.sub(r"//.*", "", outside_tests(path.read_text()))
        for name in re.findall(r"\bcrate::(\w+)", code):
            used.setdefault(name, path.name)
    modules = {path.stem for path in CORE.iterdir()}
    wrong = {
        name: path
        for name, path in used.items()
        if name in modules and name not in CORE_USES[part] | {part, "error", "ids"}
    }
    assert not wrong


def test_the_core_knows_neither_python_nor_arrow_and_has_no_unsafe_code():
    manifest = (ROOT / "rust/core/Cargo.toml").read_text()
    assert not re.search(r"pyo3|arrow|polars", manifest)
    for path in rust_files(CORE):
        assert not re.search(r"\bunsafe\s*\{|\bunsafe fn\b", path.read_text()), path


def test_the_binding_has_one_unsafe_place_and_it_says_why():
    places = [
        (path.name, line)
        for path in rust_files(BINDING)
        for line in path.read_text().splitlines()
        if re.search(r"\bunsafe\b\s*\{", line)
    ]
    assert [name for name, _ in places] == ["numbers.rs"]
    assert "// SAFETY:" in (BINDING / "numbers.rs").read_text()


def test_only_one_file_of_the_binding_lets_go_of_the_interpreter_for_a_run():
    detached = {path.name for path in rust_files(BINDING) if ".detach(" in path.read_text()}
    assert "doorway.rs" in detached
    assert "wavesim::simulate(" not in "".join(
        path.read_text() for path in rust_files(BINDING) if path.name != "run.rs"
    )


def test_every_class_of_the_binding_is_frozen():
    found = 0
    for path in rust_files(BINDING):
        for attribute in re.findall(r"#\[pyclass[^\]]*\]", path.read_text()):
            assert "frozen" in attribute, path
            found += 1
    assert found >= 3
    machine = wavesim.device("h200").machine
    with pytest.raises(AttributeError):
        machine.anything = 1


def specs(of: type[Spec] = Spec) -> list[type[Spec]]:
    return [sub for cls in of.__subclasses__() for sub in (cls, *specs(cls))]


def test_every_spec_is_frozen_and_refuses_unknown_fields():
    assert len(specs()) > 20
    for spec in specs():
        assert spec.model_config["frozen"], spec
        assert spec.model_config["extra"] == "forbid", spec


@pytest.mark.parametrize(
    "path",
    [*rust_files(CORE), *rust_files(BINDING), *sorted(PACKAGE.rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_file_is_longer_than_500_lines(path):
    assert len(path.read_text().splitlines()) <= 500


def loaded_at_import(path: Path) -> set[str]:
    """Modules of the package that a file loads when it is imported."""
    names = set()
    body = [ast.parse(path.read_text()).body]
    while body:
        for node in body.pop():
            if isinstance(node, ast.If):
                checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
                body.append(node.orelse if checking else node.body + node.orelse)
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("wavesim.")}


def test_imports_of_the_package_run_one_way():
    layer_of = {part: i for i, layer in enumerate(LAYERS) for part in layer}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for name in loaded_at_import(path) - {part}:
            if name in layer_of and part in layer_of and layer_of[name] > layer_of[part]:
                wrong.append(f"{path.relative_to(PACKAGE)} loads {name}")
    assert not wrong


def test_every_part_of_the_package_has_its_layer():
    parts = {path.name.removesuffix(".py").removesuffix(".pyi") for path in PACKAGE.iterdir()}
    known = {part for layer in LAYERS for part in layer}
    assert {part for part in parts if re.fullmatch(r"[a-z]\w*", part)} - {"py"} <= known


def test_every_public_name_is_there():
    for name in wavesim.__all__:
        assert getattr(wavesim, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = wavesim.nonsense


def test_there_is_one_version():
    manifest = (ROOT / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.+)"', manifest, re.M)
    assert version is not None
    assert wavesim.__version__ == version[1]
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
