"""Walk a built site: every internal link leads to a page and a place on it, and nothing is loaded from elsewhere.

python docs/check_site.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """Links, loaded files and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value for key, value in attrs if value is not None}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        self.loaded += [value for key, value in given.items() if (tag, key) in LOADED]
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def problems(site: Path) -> list[str]:
    """One line for each thing that is wrong."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        for address in page.links + page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    found.append(f"{path}: loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{path}: {address} leads nowhere")
            elif target in pages and address in page.links and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path}: {address} is a page without that place")
    return found


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    site = Path(sys.argv[1]).resolve()
    wrong = problems(site)
    print("\n".join(wrong) or f"{len(list(site.rglob('*.html')))} pages, all links lead somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
