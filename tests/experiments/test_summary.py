"""Values of rows, made up so that the right ones are known."""

from roadict.experiments.summary import by_iteration


def traced(method, trace, panel="iterations"):
    return {"settings": {"panel": panel, "method": {"name": method}}, "result": {"trace": trace}}


def test_errors_along_the_iterations_are_those_of_each_iteration():
    """A run that has ended keeps its last error."""
    rows = [
        traced("mod", [[1, 0.5], [10, 0.2], [100, 0.1]]),
        traced("mod", [[1, 0.4], [10, 0.3]]),
        traced("ksvd", [[1, 0.9]]),
        traced("ksvd", [[7, 0.0]], panel="another"),
    ]
    assert by_iteration(rows, "iterations") == {
        "mod": {1: [0.5, 0.4], 10: [0.2, 0.3], 100: [0.1, 0.3]},
        "ksvd": {1: [0.9]},
    }
