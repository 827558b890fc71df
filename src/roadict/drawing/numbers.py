"""Numbers for people: powers of ten with a raised exponent instead of e-notation."""

import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Not inside words, file names and versions.
_E_NOTATION = re.compile(r"(?<![\w.-])(\d(?:\.\d+)?)e([+-]?\d+)(?![\w-]|\.\w)", re.IGNORECASE)


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits.

    Examples
    --------
    >>> number(0.0123456), number(4.2e-05), number(1e-4), number(12345.0), number(0)
    ('0.0123', '4.2 × 10⁻⁵', '10⁻⁴', '12,300', '0')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        rounded = float(f"{value:.{digits}g}")
        return f"{rounded:,.{digits}g}" if abs(rounded) < 10**digits else f"{rounded:,.0f}"
    return without_e(f"{value:.{digits - 1}e}")


def without_e(text: str) -> str:
    """Replace e-notation in a text.

    Examples
    --------
    >>> without_e("relative error 5.06e-11, tol 1e-04"), without_e("run-1e-4.csv")
    ('relative error 5.06 × 10⁻¹¹, tol 10⁻⁴', 'run-1e-4.csv')
    """
    return _E_NOTATION.sub(_power, text)


def _power(match: re.Match[str]) -> str:
    factor, exponent = f"{float(match[1]):.12g}", str(int(match[2])).translate(_RAISED)
    return f"10{exponent}" if factor == "1" else f"{factor} × 10{exponent}"
