"""The tab for signals in a page that nobody sees, in a process of its own, as Gradio leaves event loops open.

Reads from standard input a list of clicks on "Learn", each as values of fields by their names, and "damaged" where the
model is to be damaged before it is shown; writes for each the panel, the command and whether "Learn" is enabled again,
and the model to model-0.npz, model-1.npz and so on in its folder. A click with "again" has the fields that the form
gets when the latest past run is opened. Instead of a click there may be a form, "saved" in a browser; it writes the
fields that are filled with it.
"""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import gradio as gr

from roadict.studio.jobs import JobQueue
from roadict.studio.page.signals_tab import SignalsTab
from roadict.studio.page.strip import Strip
from roadict.studio.past import PastRuns


class Runs(PastRuns):
    """Past runs that may damage the model of the latest one."""

    damaged = False

    def settle(self, job):
        super().settle(job)
        if self.damaged:
            job.result.write_bytes(b"")


def main():
    folder = Path(sys.argv[1])
    for name in ("jobs", "samples"):
        (folder / name).mkdir()
    queue = JobQueue()
    with gr.Blocks(analytics_enabled=False) as page:
        past = Runs(folder / "jobs", folder / "store")
        tab = SignalsTab(queue, past, Strip(queue, past), folder / "samples")
    shown = []
    for i, values in enumerate(json.load(sys.stdin)):
        past.damaged = values.get("damaged", False)
        if "saved" in values:
            filled = tab.restore(values["saved"], SimpleNamespace(session_hash="page"))
            shown.append({name: filled[field]["value"] for name, field in tab.fields.items() if field in filled})
            continue
        if values.get("again"):
            values = tab.settings(past.open(past.listed()[0].id))
        shown.append(click(page, tab, values, folder / f"model-{i}.npz"))
    print(json.dumps(shown))
    queue.close()


def click(page, tab, values, output):
    """Run as the button does: with the fields, in the order in which it passes them."""
    (event,) = [event for event in page.fns.values() if event.fn is not None and event.targets[0][0] == tab.start._id]
    names = {id(field): name for name, field in vars(tab).items() if isinstance(name, str)}
    shown = {}
    for update in event.fn(
        *(values.get(names[id(field)], field.value) for field in event.inputs), SimpleNamespace(session_hash="page")
    ):
        shown |= update
        if tab.result in update:
            shutil.copyfile(update[tab.result]["value"], output)
    details = shown.get(tab.details, {}).get("value") or ""
    enabled = shown[tab.start]["interactive"]
    return {"panel": shown[tab.panel] + details, "command": shown.get(tab.command), "enabled": enabled}


if __name__ == "__main__":
    main()
