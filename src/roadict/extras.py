"""Packages that only some functions and commands need: which extra brings them, and the error without them."""

from importlib.util import find_spec

PICTURES = ("PIL", "skimage", "pywt", "tifffile")
PAGES = (*PICTURES, "jinja2", "matplotlib")
_EXTRAS = dict.fromkeys(PICTURES, "pictures") | {
    "matplotlib": "plots",
    "jinja2": "plots",
    "mlxtend": "experiments",
    "pandas": "dataframe",
    "torch": "gpu",
    "triton": "gpu",
    "gradio": "studio",
}
_NAMES = {"PIL": "pillow", "skimage": "scikit-image", "pywt": "PyWavelets"}


def installed(module: str) -> bool:
    """Whether a module could be imported; it is not."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def missing_text(use: str, modules: tuple[str, ...], extra: str = "") -> str:
    """Say what a use needs and how to install it; "" if all modules are installed. Parameters as of ``require``."""
    missing = [module for module in modules if not installed(module)]
    if not missing:
        return ""
    extras = extra or ",".join(dict.fromkeys(_EXTRAS[module] for module in missing))
    *others, last = (_NAMES.get(module, module) for module in missing)
    names = f"{', '.join(others)} and {last}" if others else last
    return f"{use} needs {names}; install {'them' if others else 'it'} with: pip install 'roadict[{extras}]'"


def require(use: str, *modules: str, extra: str = "") -> None:
    """Raise ModuleNotFoundError unless all modules are installed.

    Parameters
    ----------
    use : str
        The function or command that needs them, as users call it.
    *modules : str
        Names to import.
    extra : str
        The extra to name; "": those of the missing modules.

    Examples
    --------
    >>> require("roadict show", "numpy")
    """
    if text := missing_text(use, modules, extra):
        raise ModuleNotFoundError(text)
