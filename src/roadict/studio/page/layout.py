"""The page: a heading and two tabs."""

from pathlib import Path
from typing import Any

import gradio as gr

from roadict.studio.jobs import JobQueue
from roadict.studio.page.pictures_tab import PicturesTab
from roadict.studio.page.signals_tab import SignalsTab
from roadict.studio.page.views import PLAIN

CSS_FILE = Path(__file__).with_name("style.css")
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


def build(queue: JobQueue, folder: Path) -> Any:
    """Build the page.

    Parameters
    ----------
    queue : JobQueue
        Runs its jobs.
    folder : Path
        For samples and for the files of jobs.

    Returns
    -------
    gradio.Blocks
    """
    jobs, samples = folder / "jobs", folder / "samples"
    jobs.mkdir()
    samples.mkdir()
    with gr.Blocks(title="roadict studio", analytics_enabled=False, delete_cache=(_DAY, _DAY)) as page:
        gr.HTML(_HEADING, **PLAIN)
        with gr.Tabs():
            with gr.Tab("Pictures", id="pictures"):
                pictures = PicturesTab(queue, jobs, samples)
            with gr.Tab("Signals", id="signals"):
                signals = SignalsTab(queue, jobs, samples)
        page.unload(pictures.cancel_jobs)
        page.unload(signals.cancel_jobs)
    page.queue(default_concurrency_limit=None, api_open=False)
    return page


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
        link_text_color="*primary_700",
        link_text_color_dark="*primary_300",
    )
