"""Numbers for people: powers of ten with a raised exponent instead of e-notation."""

import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
# Not inside words, file names and versions.
_E_NOTATION = re.compile(r"(?<![\w.-])(\d(?:\.\d+)?)e([+-]?\d+)(?![\w-]|\.\w)", re.IGNORECASE)


def number(value: float, digits: int = 3) -> str:
    r"""Write a number with so many significant digits.

    Examples
    --------
    >>> number(0.0123456), number(4.2e-05), number(1e-4), number(12345.0), number(0)
    ('0.0123', '4.2\xa0×\xa010⁻⁵', '10⁻⁴', '12,300', '0')
    """
    if value == 0 or _is_plain(value):
        rounded = float(f"{value:.{digits}g}")
        return f"{rounded:,.{digits}g}" if abs(rounded) < 10**digits else f"{rounded:,.0f}"
    return without_e(f"{value:.{digits - 1}e}")


def without_e(text: str) -> str:
    r"""Replace e-notation in a text.

    Examples
    --------
    >>> without_e("error 5.06e-11, tol 1e-04, bound 3.00e-01"), without_e("run-1e-4.csv")
    ('error 5.06\xa0×\xa010⁻¹¹, tol 10⁻⁴, bound 0.3', 'run-1e-4.csv')
    >>> without_e("relative error 0.00e+00")
    'relative error 0'
    """
    return _E_NOTATION.sub(_power, text)


def _power(match: re.Match[str]) -> str:
    if (value := float(match[0])) == 0 or _is_plain(value):
        return f"{value:,.12g}"
    factor, exponent = f"{float(match[1]):.12g}", str(int(match[2])).translate(_RAISED)
    return f"10{exponent}" if factor == "1" else f"{factor}{_TIMES}10{exponent}"


def _is_plain(value: float) -> bool:
    """Whether a number reads better without a power of ten."""
    return 1e-3 <= abs(value) < 1e6
