"""The tab for signals: learn a dictionary from a matrix."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from roadict.studio import inputs, panels
from roadict.studio.commands import Command, learn_command
from roadict.studio.jobs import Job
from roadict.studio.methods import METHODS, ROAD, codes_by_number
from roadict.studio.naming import KNOWN_ATOMS, METHOD, MISSING, PER_SIGNAL, SIGN_CHOICES, SIGNS
from roadict.studio.page.tab import Tab, Update
from roadict.studio.page.views import PLAIN, QUIET, shown
from roadict.studio.results import show_signals
from roadict.studio.samples import find_truth, signal_samples
from roadict.studio.verdict import ATOMS, ERROR_BOUND, FIND, MARK, NUMBERS, SEED
from roadict.wording import agree, plural

_TWICE, _TENTH, _AUTO = "twice the entries", "a tenth of the entries", "auto"
"""Defaults of fields: the first two are fixed rules; auto is found in the data."""
_GIVEN: dict[str, Any] = {"label": ATOMS, "info": "A number, or the default: twice the entries of a signal."}
_FOUND: dict[str, Any] = {"label": NUMBERS, "info": "A range such as 16:64, or auto: up to four times the entries."}
_SEARCHED = 4
"""Largest number that auto tries, in entries of a signal."""
_NOISE = "0.1 for 10 % noise. Auto: as found in the data."
_FINDING = "Instead of giving it: by how well hidden entries are predicted. Takes about five times as long."
_OF_ROAD = f"With {METHODS[ROAD]} only, see “{METHOD}” below."


_ANY = next(iter(SIGN_CHOICES))
_DEFAULTS: dict[str, Any] = {
    "data": None,
    "fixed": None,
    "signs": _ANY,
    "missing": False,
    "choose": False,
    "stability": False,
    "method": ROAD,
    "n_components": _TWICE,
    "epsilon": _AUTO,
    "sparsity": _TENTH,
    "seed": "0",
}
"""Of all fields."""


class SignalsTab(Tab):
    """Components and their handlers."""

    name = "signals"
    run_label = "Learn"
    download_label = "Download model"
    invitation = "Drop a matrix, or click a sample, and learn its atoms."
    uploads = ("data", "fixed")

    def _add_inputs(self, samples: Path) -> None:
        self._samples = signal_samples(samples)
        self.data = gr.File(label="Signals, one per row: .npy or .csv", height=132, elem_id="signals-file")
        self.summary = gr.HTML(elem_id="signals-summary", **PLAIN)
        self._add_sample_label()
        with gr.Row():
            self.samples = [gr.Button(sample.title, size="md", min_width=140) for sample in self._samples]
        with gr.Row():
            self.n_components = gr.Textbox(_TWICE, **_GIVEN, min_width=140, elem_id="signals-components")
            self.epsilon = gr.Textbox(_AUTO, label=ERROR_BOUND, info=_NOISE, min_width=140, elem_id="signals-epsilon")
        self.choose = gr.Checkbox(
            label=FIND,
            info=_FINDING,
            elem_id="signals-choose",
        )
        self.stability = gr.Checkbox(
            label=MARK,
            info="Those that do not recur in halves of the data, by four more fits.",
            elem_id="signals-stability",
        )
        self.signs = gr.Radio(list(SIGN_CHOICES), value=_ANY, label=SIGNS, elem_id="signals-signs")
        self.missing = gr.Checkbox(label=MISSING, value=False, elem_id="signals-missing")
        with self._add_more_options():
            self.method = gr.Dropdown(
                [(name, method) for method, name in METHODS.items()], value=ROAD, label=METHOD, elem_id="signals-method"
            )
            self.sparsity = gr.Textbox(
                _TENTH,
                label=PER_SIGNAL,
                info="A number, or the default: a tenth of the entries.",
                visible=False,
                elem_id="signals-sparsity",
            )
            self.fixed = gr.File(
                label=f"{KNOWN_ATOMS}, one per row: .npy or .csv", height=110, elem_id="signals-fixed-file"
            )
            self.seed = gr.Textbox("0", label=SEED, info="The same seed gives the same model.", elem_id="signals-seed")

    def _connect(self) -> None:
        self.data.change(self._preview, self.data, self.summary, **QUIET)
        for button, sample in zip(self.samples, self._samples, strict=True):
            bound = _AUTO if sample.epsilon is None else str(sample.epsilon)
            given = {"data": str(sample.file), "n_components": str(sample.n_components), "epsilon": bound}
            button.click(lambda given=given: self.fill(_DEFAULTS | given), None, self.form, **QUIET)
        self.choose.input(self._show_choice, self.choose, [self.n_components, self.epsilon], **QUIET)
        fields = self.fields
        self.method.input(
            lambda *values: self.fill(self._fitting(dict(zip(fields, values, strict=True)))),
            list(fields.values()),
            self.form,
            **QUIET,
        )
        self.start.click(self._run, list(self.fields.values()), list(self.outputs), concurrency_limit=None, **QUIET)

    @property
    def fields(self) -> dict[str, Any]:
        """Components of the form by name."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def settings(self, job: Job) -> dict[str, Any]:
        """Values of fields with which the form gives the command of a job again."""
        given = job.command.options
        atoms = given.get("-k", _TWICE)
        return {
            "data": str(job.source),
            "fixed": str(job.folder / given["--fixed"]) if "--fixed" in given else None,
            "signs": next(words for words, positive in SIGN_CHOICES.items() if positive == given.get("--positive")),
            "missing": "--missing" in given,
            "choose": "-k" in given and not atoms.isdigit(),
            "stability": "--stability" in given,
            "method": given.get("--method", ROAD),
            "n_components": atoms,
            "epsilon": given.get("--epsilon", _AUTO),
            "sparsity": given.get("--sparsity", _TENTH),
            "seed": given["--seed"],
        }

    def fill(self, settings: Mapping[str, Any]) -> Update:
        """Updates that put values into the form; fields without effect on its method are disabled or hidden."""
        choose, method = bool(settings["choose"]), settings["method"]
        road = method == ROAD
        return super().fill(settings) | {
            self.n_components: gr.update(value=settings["n_components"], **(_FOUND if choose else _GIVEN)),
            self.epsilon: gr.update(
                value=settings["epsilon"], interactive=road and not choose, info=_NOISE if road else _OF_ROAD
            ),
            self.choose: gr.update(value=choose, interactive=road, info=_FINDING if road else _OF_ROAD),
            self.missing: gr.update(value=settings["missing"], interactive=road, info="" if road else _OF_ROAD),
            self.fixed: gr.update(value=settings["fixed"], visible=road),
            self.sparsity: gr.update(value=settings["sparsity"], visible=codes_by_number(method)),
        }

    def _fitting(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings after another method was chosen, without those that have no effect on it."""
        method, without = settings["method"], [] if codes_by_number(settings["method"]) else ["sparsity"]
        if method != ROAD:
            without += ["epsilon", "missing", "fixed", *(["choose", "n_components"] if settings["choose"] else [])]
        return settings | {name: _DEFAULTS[name] for name in without}

    def _set_options(self, settings: Mapping[str, Any]) -> list[str]:
        method, fixed, sparsity, seed = (settings[name] for name in ("method", "fixed", "sparsity", "seed"))
        words = [METHODS[method]] if method != ROAD else []
        words += [f"{sparsity.strip()} atoms per signal"] if sparsity.strip() not in ("", _TENTH) else []
        words += [f"{KNOWN_ATOMS.lower()} {Path(fixed).name}"] if fixed is not None else []
        return words + ([f"seed {seed.strip()}"] if seed.strip() not in ("", _DEFAULTS["seed"]) else [])

    def _preview(self, path: str | None) -> str:
        """Describe the matrix that was dropped, or show the error."""
        if path is None:
            return ""
        try:
            data, notes = inputs.read_table_and_notes(path)
        except ValueError as error:
            return panels.error(str(error))
        empty = int(np.isnan(data).sum())
        text = f"{plural(data.shape[0], 'signal')} of {plural(data.shape[1], 'entry')}"
        text += f"; {empty:,} {agree(empty)} missing" if empty else ""
        return panels.dropped(". ".join([text, *notes]))

    def _show_choice(self, choose: bool) -> tuple[Any, Any]:
        """Ask for a number of atoms, or for numbers to try, which choose the error bound too."""
        numbers = {"value": _AUTO, **_FOUND} if choose else {"value": _TWICE, **_GIVEN}
        return gr.update(**numbers), gr.update(value=_AUTO, interactive=not choose)

    def _run(
        self,
        path: str | None,
        fixed: str | None,
        signs: str,
        missing: bool,
        choose: bool,
        stability: bool,
        method: str,
        n_components: str,
        epsilon: str,
        sparsity: str,
        seed: str,
        request: gr.Request,
    ) -> Iterator[Update]:
        def prepare(folder: Path) -> Command:
            if path is None:
                raise ValueError("There are no signals; drop a .npy or .csv file, or click a sample")
            data = inputs.read_table(path)
            atoms: str | int | None
            if choose:
                atoms, most = inputs.parse_range(NUMBERS, n_components)
                inputs.check_state(data.shape, most or _SEARCHED * data.shape[1])
            elif n_components.strip() == _AUTO:
                raise ValueError(f"{ATOMS} is {_AUTO}; enter a number or “{_TWICE}”, or tick “{FIND}”")
            else:
                atoms = inputs.parse_count(ATOMS, n_components, default=_TWICE)
                inputs.check_state(data.shape, atoms, blocks=method == ROAD)
            empty = int(np.isnan(data).sum())
            if empty and not missing:
                tick = (
                    f"tick “{MISSING}”" if method == ROAD else f"choose “{METHOD}” {METHODS[ROAD]} and tick “{MISSING}”"
                )
                raise ValueError(f"{Path(path).name} lacks {empty:,} of its entries; fill them, or {tick}")
            if fixed is not None:
                inputs.read_table(fixed)
                if Path(fixed).name == Path(path).name:
                    raise ValueError(f"Signals and known atoms are both called {Path(path).name}; rename one of them")
            return learn_command(
                inputs.copy_upload(path, folder),
                n_components=atoms,
                method=method,
                sparsity=inputs.parse_count(PER_SIGNAL, sparsity, default=_TENTH),
                positive=SIGN_CHOICES[signs],
                fixed=None if fixed is None else inputs.copy_upload(fixed, folder),
                epsilon=inputs.parse_number(ERROR_BOUND, epsilon),
                missing=missing,
                stability=stability,
                seed=inputs.parse_count(SEED, seed, 0) or 0,
            )

        yield from self._run_job(request, prepare)

    def _finish(self, job: Job) -> Update:
        result = show_signals(job, find_truth(self._samples, job.source))
        return {self.panel: result.panel, **shown(self.view, self.details, result)}
