"""A tab in a page that nobody sees, in a process of its own, as Gradio leaves event loops open.

Its arguments are a folder and the name of the tab. Reads from standard input a list of clicks on "Learn" or "Run", each
as values of fields by their names, "damaged" where the result is to be damaged before it is shown, and "homeless" where
the folder of jobs has gone; writes for each the panel, the command and whether the button is enabled again, and the
result to result-0.npz, result-1.npz and so on in its folder. A click with "again" has the fields that the form gets
when the latest past run is opened. Instead of a click there may be a form, "saved" in a browser; it writes the fields
that are filled with it.

Signals are learned from, unless a click names a model as "learned": the result is then a copy of that. For pictures,
whose commands take longer, it is a copy of the picture.
"""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np

from roadict.studio.jobs import Job, JobQueue
from roadict.studio.page.pictures_tab import PicturesTab
from roadict.studio.page.signals_tab import SignalsTab
from roadict.studio.page.strip import Strip
from roadict.studio.past import PastRuns

PAGE = SimpleNamespace(session_hash="page")


class Runs(PastRuns):
    """Past runs that may damage the result of the latest one."""

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
        kind = {"signals": SignalsTab, "pictures": PicturesTab}[sys.argv[2]]
        tab = kind(queue, past, Strip(queue, past, lasting=True), folder / "samples")
    run_command = Job._run_command
    shown = []
    for i, values in enumerate(json.load(sys.stdin)):
        past.damaged = values.pop("damaged", False)
        if values.pop("homeless", False):
            shutil.rmtree(folder / "jobs")
        if kind is PicturesTab:
            Job._run_command = copied(None)
        elif "learned" in values:
            Job._run_command = copied(values["learned"])
        else:
            Job._run_command = run_command
        if "saved" in values:
            shown.append(filled(tab, tab.restore(values["saved"], PAGE)))
            continue
        if values.get("again"):
            values = filled(tab, tab.fill(tab.settings(past.open(past.listed()[0].id))))
            if kind is PicturesTab:  # as it does when the picture changes
                values["source"] = tab._choose_source(values["picture"], values["source"], values["mask_file"])
        shown.append(click(page, tab, values, folder / f"result-{i}"))
    print(json.dumps(shown))
    queue.close()


def copied(result):
    """Return what copies a file, or the job's picture, instead of running the job."""

    def run_command(job):
        shutil.copyfile(result or job.source, job.result)
        return 0

    return run_command


def filled(tab, updates):
    """Values of fields that are filled."""
    return {name: updates[field]["value"] for name, field in tab.fields.items() if field in updates}


def click(page, tab, values, output):
    """Run as the button does: with the fields, in the order in which it passes them."""
    (event,) = [event for event in page.fns.values() if event.fn is not None and event.targets[0][0] == tab.start._id]
    names = {id(field): name for name, field in vars(tab).items() if isinstance(name, str)}
    if "editor" in values:
        values = values | {"editor": {"layers": [np.array(layer, np.uint8) for layer in values["editor"]]}}
    given = [values.get(names.get(id(field)), field.value) for field in event.inputs]
    shown = {}
    for update in event.fn(*given, PAGE):
        assert {tab.start, tab.cancel} <= update.keys()  # a page that loses one gets its buttons with the next
        shown |= update
        if tab.result in update:
            result = Path(update[tab.result]["value"])
            shutil.copyfile(result, output.with_suffix(result.suffix))
    details = shown.get(tab.details, {}).get("value") or ""
    enabled = shown[tab.start]["interactive"]
    return {"panel": shown[tab.panel] + details, "command": shown.get(tab.command), "enabled": enabled}


if __name__ == "__main__":
    main()
