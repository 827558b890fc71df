"""The page: a heading, the strip of past runs and two tabs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from roadict.studio.jobs import JobQueue
from roadict.studio.page.pictures_tab import PicturesTab
from roadict.studio.page.signals_tab import SignalsTab
from roadict.studio.page.strip import CSS_FILE as STRIP_CSS
from roadict.studio.page.strip import Strip, page_of
from roadict.studio.page.tab import Tab, Update
from roadict.studio.page.views import PLAIN, QUIET
from roadict.studio.past import PastRuns

CSS_FILES = (Path(__file__).with_name("style.css"), STRIP_CSS)
_DAY = 24 * 3600
_EMBER = gr.themes.Color(
    name="ember",
    c50="#fdf5ef",
    c100="#fae6d8",
    c200="#f3c9ad",
    c300="#eaa57a",
    c400="#de7f48",
    c500="#cc6324",
    c600="#b8501a",
    c700="#9a4016",
    c800="#7b3415",
    c900="#632c14",
    c950="#361507",
)
_HEADING = """
<header class="rd-heading">
  <h1>roadict <span>studio</span></h1>
  <p>Learn a dictionary from your own picture or signals. Everything stays on this machine.</p>
</header>
"""


def build(queue: JobQueue, folder: Path, store: Path) -> Any:
    """Build the page.

    Parameters
    ----------
    queue : JobQueue
        Runs its jobs.
    folder : Path
        For samples and for the files of jobs.
    store : Path
        For past runs.

    Returns
    -------
    gradio.Blocks
    """
    jobs, samples = folder / "jobs", folder / "samples"
    jobs.mkdir()
    samples.mkdir()
    past = PastRuns(jobs, store)
    with gr.Blocks(title="roadict studio", analytics_enabled=False, delete_cache=(_DAY, _DAY)) as page:
        gr.HTML(_HEADING, **PLAIN)
        strip = Strip(queue, past, lasting=not store.is_relative_to(folder))
        with gr.Tabs() as tabs:
            with gr.Tab("Pictures", id="pictures"):
                pictures = PicturesTab(queue, past, strip, samples)
            with gr.Tab("Signals", id="signals"):
                signals = SignalsTab(queue, past, strip, samples)
        by_name: dict[str, Tab] = {"pictures": pictures, "signals": signals}
        last = _remember_tab(page, queue, tabs, list(by_name))
        _connect(page, queue, past, strip, tabs, by_name, last)
    page.queue(default_concurrency_limit=None, api_open=False)
    return page


def _connect(
    page: Any, queue: JobQueue, past: PastRuns, strip: Strip, tabs: Any, by_name: dict[str, Tab], last: Any
) -> None:
    """Connect the strip and the jobs of closed pages to the tabs."""

    def show(event: gr.EventData, request: gr.Request) -> Update:
        name = str(event.run)
        try:
            live = [job for job in queue.unfinished() if job.folder.name == name]
            job = live[0] if live else past.open(name)
            tab = "signals" if job.command.task == "learn" else "pictures"
            return {tabs: gr.update(selected=tab), last: tab, **by_name[tab].look_at(job, request)}
        except (ValueError, OSError) as error:
            raise gr.Error(str(error)) from error

    def leave(request: gr.Request) -> None:
        queue.abandon(page_of(request))

    outputs = set.union(*(tab.outputs | {*tab.form} for tab in by_name.values()))
    strip.cards.show(show, None, [tabs, last, *outputs], **QUIET)
    for tab in by_name.values():
        tab.saved.render()

        def resume(request: gr.Request, tab: Tab = tab) -> Iterator[Update]:
            job = tab.adopt(request)
            yield {strip.cards: strip.html(page_of(request))}
            if job is not None:
                yield {tabs: gr.update(selected=tab.name)}
                yield from tab.watch(job)

        # Apart from the progress of a job, whose updates would disturb who fills in the form meanwhile.
        page.load(tab.restore, tab.saved, [tab.restored, *tab.form], **QUIET)
        page.load(resume, None, [tabs, *tab.outputs], concurrency_limit=None, **QUIET)
    page.unload(leave)


def _remember_tab(page: Any, queue: JobQueue, tabs: Any, names: list[str]) -> Any:
    """Show the tab that was chosen last after a reload, unless there is a job, whose tab is shown; return its state."""
    last = gr.BrowserState(names[0], storage_key="roadict-tab", secret="roadict")

    def choose(event: gr.SelectData) -> str:
        return str(names[event.index])

    def restore(name: Any, request: gr.Request) -> Any:
        # The first one is shown already, unless its user was faster.
        shown = name not in names[1:] or queue.within_reach(page_of(request))
        return gr.skip() if shown else gr.update(selected=name)

    tabs.select(choose, None, last, **QUIET)
    page.load(restore, last, tabs, **QUIET)
    return last


def theme() -> Any:
    """Colours and shapes; system fonts, as others would come over the network."""
    base = gr.themes.Base(
        primary_hue=_EMBER,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        font=["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    )
    return base.set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="#14120f",
        block_background_fill="white",
        block_background_fill_dark="#1e1b18",
        block_border_width="1px",
        block_label_text_weight="600",
        block_title_text_weight="600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_500",
        button_primary_text_color="white",
        button_secondary_background_fill="*neutral_100",
        button_secondary_background_fill_dark="*neutral_800",
        checkbox_label_background_fill="*neutral_100",
        checkbox_label_background_fill_dark="*neutral_800",
        checkbox_label_background_fill_selected="*primary_50",
        checkbox_label_background_fill_selected_dark="*primary_950",
        # Boxes and circles to tick: a contrast of 3 to what is around them, or more.
        checkbox_background_color_dark="*neutral_900",
        checkbox_border_color="*neutral_500",
        checkbox_border_color_dark="*neutral_400",
        checkbox_border_color_hover="*neutral_700",
        checkbox_border_color_hover_dark="*neutral_200",
        link_text_color="*primary_700",
        link_text_color_dark="*primary_300",
    )
