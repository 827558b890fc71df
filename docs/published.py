"""Parts of pages that ``benchmarks/paper.py`` makes: shown once they are there, instead of what stands in the page."""

import re

REPORT = "results/report.html"
FRAME = """```{raw} html
<iframe class="report" src="report.html" title="The paper's claims with verdicts, figures and tables"></iframe>
<p class="alone"><a href="report.html">Open it alone</a></p>
```"""


def block(text, name):
    """What stands between the comments of a block; the first of them may also name the command that writes it."""
    return _place(name).search(text)[1]


def _place(name):
    return re.compile(rf"<!-- {name}(?:: [^\n]*)? -->\n(.*?)\n?<!-- /{name} -->", flags=re.DOTALL)


def home(text, readme):
    """The home page, with the figure of success that the README shows, if it has one."""
    return _instead(text, "success", block(readme, "success").replace("](docs/", "]("))


def results(text, *, report):
    """The page of the results, with the interactive report in it, if there is one."""
    return _instead(text, "report", FRAME if report else "")


def _instead(text, name, content):
    """Put content between the comments of a block, and leave what stands there if it is empty."""
    if not content:
        return text
    start, end = _place(name).search(text).span(1)
    return text[:start] + content + text[end:]
