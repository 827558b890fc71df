"""Parts of pages that ``benchmarks/paper.py`` makes: shown once they are there, instead of what stands in the page."""

import blocks

REPORT = "results/report.html"
FRAME = """```{raw} html
<iframe class="report" src="report.html" title="The paper's claims with verdicts, figures and tables"></iframe>
<p class="alone"><a href="report.html">Open it alone</a></p>
```"""


def home(text, readme):
    """The home page, with the figure of success that the README shows, if it has one."""
    return _instead(text, "success", blocks.content(readme, "success").replace("](docs/", "]("))


def results(text, *, report):
    """The page of the results, with the interactive report in it, if there is one."""
    return _instead(text, "report", FRAME if report else "")


def _instead(text, name, content):
    """Put content into a block, and leave what stands there if it is empty."""
    return blocks.replaced(text, name, content) if content else text
