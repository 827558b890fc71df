"""Docstrings: every public name documents its parameters, defaults, shapes and an example that doctest runs."""

import importlib
import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from roadict import ROAD, ROADCV, AlternatingDictionaryLearning, SparseCoder
from roadict.synthetic import planted

MODULES = ("roadict", "roadict.metrics", "roadict.synthetic", "roadict.pictures", "roadict.plotting")
MORE = (("roadict.runs.history", "History"), ("roadict.runs.loop", "Snapshot"))  # returned by the others
NAMES = [
    (module, name) for module in MODULES for name in importlib.import_module(module).__all__ if name != "__version__"
]


def found(module, name):
    return getattr(importlib.import_module(module), name)


def sections(thing):
    """The sections of a numpydoc docstring, by title; the summary has none."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) + "\n", flags=re.MULTILINE)
    return {"": pieces[0]} | dict(zip(pieces[1::2], pieces[2::2], strict=True))


def entries(text):
    """Name and type of every entry of a section."""
    lines = re.findall(r"^(\w[\w, ]*?) : (.*)$", text, flags=re.MULTILINE)
    return {name: kind for names, kind in lines for name in names.split(", ")}


def parameters(thing):
    """The named parameters; of a class, those of its constructor."""
    given = inspect.signature(thing).parameters.values()
    return [parameter for parameter in given if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]


@pytest.mark.parametrize(("module", "name"), [*NAMES, *MORE])
def test_every_public_name_has_a_running_example(module, name):
    example = sections(found(module, name)).get("Examples", "")
    assert ">>> " in example
    assert re.search(r"^(?!>>>|\.\.\.)\S", example, flags=re.MULTILINE), "no output to check"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_parameter_is_documented_with_its_default(module, name):
    thing = found(module, name)
    parts = sections(thing)
    documented = entries(parts["Attributes" if name == "Planted" else "Parameters"])
    assert list(documented) == [parameter.name for parameter in parameters(thing)]
    for parameter in parameters(thing):
        if parameter.default is not parameter.empty:
            shown = f'"{parameter.default}"' if isinstance(parameter.default, str) else repr(parameter.default)
            kind = documented[parameter.name].replace("1e-4", "0.0001")
            assert kind == "None" or kind.endswith(f"default={shown}"), parameter.name
    if not inspect.isclass(thing) and inspect.signature(thing).return_annotation not in (None, "None"):
        assert parts["Returns"].strip()


def methods():
    for module, name in NAMES:
        thing = found(module, name)
        for method, function in inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else ():
            if not method.startswith("_") and getattr(function, "__module__", "").startswith("roadict"):
                yield pytest.param(function, id=f"{name}.{method}")


@pytest.mark.parametrize("function", list(methods()))
def test_every_public_method_has_a_docstring_with_its_parameters(function):
    names = [parameter.name for parameter in parameters(function) if parameter.name not in ("self", "cls")]
    if names:
        assert list(entries(sections(function)["Parameters"])) == names


@pytest.mark.parametrize(
    "model",
    [
        ROAD(8, max_iter=3, n_init=1, random_state=0),
        ROADCV([8], n_splits=1, max_iter=3, random_state=0),
        AlternatingDictionaryLearning(8, n_nonzero_coefs=2, max_iter=3, random_state=0),
        SparseCoder(np.eye(6)),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:.*converged")
@pytest.mark.filterwarnings("ignore:about 40 of 240 entries are hidden")
def test_attributes_of_a_fit_are_those_of_the_docstring(model):
    """With their types, and arrays with their shapes."""
    model = clone(model).fit(planted(40, 6, 8, sparsity=2, random_state=0).data)
    told = entries(sections(type(model))["Attributes"])
    assert set(told) == {name for name in vars(model) if name.endswith("_") and name[0] != "_"}
    lengths = {"n_components": 8, "n_features": 6, "n_samples": 40}
    for name, kind in told.items():
        value = getattr(model, name)
        if shape := re.search(r"of shape \((.*)\)", kind):
            assert np.shape(value) == tuple(lengths[length] for length in re.findall(r"\w+", shape[1])), name
        elif kind.startswith("{"):
            assert f'"{value}"' in kind, name
        else:
            assert ("None" if value is None else type(value).__name__) in kind.split(" or "), name
