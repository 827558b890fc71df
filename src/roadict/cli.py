"""The command line: learn, encode, show, demo; others are in ``cli_pictures`` and ``cli_experiments``."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from roadict import __version__, cli_experiments, cli_pictures
from roadict.console import WorkStoppedError, check_output, number_or_word, progress_bar, showing_warnings
from roadict.usage import UsageError, examples, told

if TYPE_CHECKING:
    from roadict.estimators import ROAD, AlternatingDictionaryLearning, SparseCoder
    from roadict.road.solve import Snapshot

    Learned = ROAD | AlternatingDictionaryLearning

BAD_INPUT = 2
INTERRUPTED = 130
ENCODE_ROWS = 5000
"""Samples coded between two signs of progress."""

app = typer.Typer(
    name="roadict",
    help="Dictionary learning: find atoms in which every signal is a combination of few.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
cli_pictures.add_commands(app)
cli_experiments.add_commands(app)

DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt.")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Name of the array in an .npz file with several.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]


def main() -> None:
    """Run the program; every expected failure is one line on standard error."""
    try:
        code = app(prog_name="roadict", standalone_mode=False)
    except UsageError as error:
        _complain(told(error))
        sys.exit(BAD_INPUT)
    except WorkStoppedError as stop:
        _complain(str(stop))
        sys.exit(INTERRUPTED)
    except (ValueError, OSError, ImportError) as error:
        _complain(_one_line(error))
        sys.exit(BAD_INPUT)
    except MemoryError as error:
        _complain(f"not enough memory: {_one_line(error)}; use fewer samples, fewer atoms or float32 data")
        sys.exit(BAD_INPUT)
    if code == INTERRUPTED:  # Typer has caught Ctrl-C
        _complain("interrupted; nothing was written")
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"roadict {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BAD_INPUT)


@app.command(
    epilog=examples(
        "roadict learn patches.npy -k 64 -o model.npz --seed 0",
        "roadict learn patches.npy -k 64 -o ksvd.npz --method ksvd --sparsity 5",
    )
)
def learn(
    data: DataArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    n_components: Annotated[
        int | None, typer.Option("--components", "-k", help="Number of atoms. Default: twice the features.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="road, or a two-stage method: mod, ksvd, approximate-ksvd, simco, blotless, sequential, "
            "consistent-sequential."
        ),
    ] = "road",
    coder: Annotated[
        str | None, typer.Option(help="two-stage: omp, lasso, ...; default omp, none for the sequential ones.")
    ] = None,
    sparsity: Annotated[
        int | None, typer.Option(help="two-stage: coefficients per signal. Default: a tenth of the features.")
    ] = None,
    formulation: Annotated[str, typer.Option(help="road: constrained, lasso or inexact.")] = "constrained",
    epsilon: Annotated[
        str, typer.Option(help="constrained: bound on the relative error, a number or auto; 0 is noise-free.")
    ] = "auto",
    alpha: Annotated[
        float | None, typer.Option(help="lasso and the sequential methods: weight of the sum of |codes|.")
    ] = None,
    beta: Annotated[str | None, typer.Option(help="inexact: one ridge weight or three, as 200,300,250.")] = None,
    rho: Annotated[str, typer.Option(help="Penalty of the ADMM: a number, three for inexact, or auto.")] = "auto",
    max_iter: Annotated[
        int | None, typer.Option(help="Largest number of iterations. Default: 2000 for road, else 100.")
    ] = None,
    tol: Annotated[
        float, typer.Option(help="Bound on the relative residuals or changes; 0: run all iterations.")
    ] = 1e-4,
    n_init: Annotated[int | None, typer.Option(help="Largest number of starts; the best is kept.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="NaN and empty cells are unobserved entries.")] = False,
    engine: Annotated[str, typer.Option(help="auto, numba or reference.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Same seed, same result.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads. Default: all cores.")] = None,
    key: KeyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Learn a dictionary from signals and save it as a model."""
    check_output(output, (".npz",), inputs=(data,))
    from roadict.estimators import ROAD, AlternatingDictionaryLearning
    from roadict.tables import read_matrix

    run: dict[str, Any] = {"tol": tol, "random_state": seed, "n_jobs": jobs} | (
        {} if max_iter is None else {"max_iter": max_iter}
    )
    model: Learned
    if method == "road":
        _refuse(method, {"--coder": coder, "--sparsity": sparsity})
        model = ROAD(
            n_components,
            formulation=formulation,
            epsilon=number_or_word("--epsilon", epsilon),
            alpha=alpha,
            beta=None if beta is None else _one_or_three("--beta", beta),
            rho=rho if rho == "auto" else _one_or_three("--rho", rho),
            n_init=n_init,
            missing_values=np.nan if missing else None,
            engine=engine,
            **run,
        )
    else:
        changed = {"--epsilon": (epsilon, "auto"), "--rho": (rho, "auto"), "--engine": (engine, "auto")}
        changed["--formulation"] = (formulation, "constrained")
        given = {option: value for option, (value, default) in changed.items() if value != default}
        _refuse(method, given | {"--beta": beta, "--n-init": n_init, "--missing": missing or None})
        _check_method(method)
        model = AlternatingDictionaryLearning(
            n_components, update=method, coder=coder, n_nonzero_coefs=sparsity, alpha=alpha, **run
        )
    X = read_matrix(data, key)
    _fit_with_progress(model, X, quiet, f"{data}: {X.shape[0]} samples of {X.shape[1]} features, {X.dtype}")
    model.save(output)
    if not quiet:
        _report(model)
        typer.echo(f"model: {output}")


@app.command(
    epilog=examples(
        "roadict encode model.npz new.npy -o codes.npz",
        "roadict encode model.npz new.npy -o codes.npz --algorithm omp -s 3",
    )
)
def encode(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that learn wrote.")],
    data: DataArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Codes to write: .npz (as codes) or .npy.")],
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            "-a",
            help="omp, mp, sp, cosamp, lasso, basis-pursuit, half or threshold. Default: as the model has it.",
        ),
    ] = None,
    n_nonzero_coefs: Annotated[
        int | None,
        typer.Option(
            "--n-nonzero-coefs",
            "-s",
            help="omp, mp, sp, cosamp, half: atoms per sample. Default: the model's, else a tenth of the features.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="lasso, half, threshold: weight of the sparsity. Default: the one chosen when learning."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="omp, mp, basis-pursuit: bound on the relative error of every sample, as 0.05."),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="NaN and empty cells are unobserved entries. Default: as when learning.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Threads. Default: all cores.")] = None,
    key: KeyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Code signals in a learned dictionary, one row of codes per signal."""
    check_output(output, (".npz", ".npy"), inputs=(model_file, data))
    from roadict.estimators import load
    from roadict.model_io import atomic_write
    from roadict.road.learn import relative_error
    from roadict.tables import read_matrix

    model = load(model_file)
    coder = _coder(model, algorithm, n_nonzero_coefs, alpha, epsilon, missing, jobs)
    X = read_matrix(data, key)
    with showing_warnings(), progress_bar(quiet, "encoding") as advance:
        parts = []
        for start in range(0, len(X), ENCODE_ROWS):
            parts.append(coder.transform(X[start : start + ENCODE_ROWS]))
            advance(min(start + ENCODE_ROWS, len(X)), len(X), "samples")
    codes = np.concatenate(parts)
    with atomic_write(output) as file:
        if output.suffix.lower() == ".npy":
            np.save(file, codes)
        else:
            np.savez_compressed(file, codes=codes)
    if not quiet:
        observed = ~np.isnan(X)
        error = relative_error(np.where(observed, X, 0), observed, codes, model.components_)
        per_sample = (codes != 0).sum(axis=1).mean()
        typer.echo(f"{len(codes)} samples, {per_sample:.2f} coefficients per sample, relative error {error:.3g}")
        typer.echo(f"codes: {output}")


@app.command(epilog=examples("roadict show model.npz -o atoms.png"))
def show(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that learn wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture to write: .png, .pdf or .svg.")],
    quiet: QuietOption = False,
) -> None:
    """Draw the atoms of a model: as pictures where they can be square, else as curves."""
    check_output(output, (".png", ".pdf", ".svg"), inputs=(model_file,))
    from roadict.estimators import load
    from roadict.plotting import atoms_figure, save_figure

    model = load(model_file)
    title = f"{len(model.components_)} atoms of {model.n_features_in_} features"
    save_figure(atoms_figure(model.components_, title, model.atom_usage_), output)
    if not quiet:
        typer.echo(f"atoms: {output}")


@app.command(epilog=examples("roadict demo --out roadict-demo --seed 0"))
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the pictures.")] = Path("roadict-demo"),
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Plant a dictionary, learn it back from samples, and draw both."""
    from roadict.estimators import ROAD
    from roadict.metrics import dictionary_error
    from roadict.plotting import compare_atoms_figure, save_figure
    from roadict.synthetic import planted

    truth = planted(400, 16, 32, sparsity=3, random_state=seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise ValueError(f"folder {out} cannot be made ({failure.strerror}); choose another place with --out") from None
    for name in ("model.npz", "atoms.png", "convergence.png"):
        check_output(out / name, (".npz", ".png"))
    model = ROAD(32, random_state=seed)
    started = time.perf_counter()
    _fit_with_progress(
        model, truth.data, quiet, "400 samples of 16 features, each a combination of 3 of 32 hidden atoms"
    )
    seconds = time.perf_counter() - started
    model.save(out / "model.npz")
    save_figure(compare_atoms_figure(truth.dictionary, model.components_), out / "atoms.png")
    save_figure(model.history_.plot(), out / "convergence.png")
    if not quiet:
        error = dictionary_error(model.components_, truth.dictionary)
        typer.echo(f"recovery error {error:.2e} (0: every atom found; about 0.4: none)")
        typer.echo(f"objective {model.objective_:.3f} (of the planted codes: {np.abs(truth.codes).sum():.3f})")
        typer.echo(f"time {seconds:.1f} s, compilation on first use included")
        _report(model)
        typer.echo(f"model: {out / 'model.npz'}")
        typer.echo(f"true and learned atoms: {out / 'atoms.png'}")
        typer.echo(f"convergence: {out / 'convergence.png'}")


def _fit_with_progress(model: "Learned", X: NDArray[Any], quiet: bool, heading: str) -> None:
    """Learn under a bar. The heading comes with the first iteration: by then data and options are in order."""
    with showing_warnings(), progress_bar(quiet, "learning") as advance:
        start = 0

        def callback(snapshot: "Snapshot") -> None:
            nonlocal start
            if start == 0 and not quiet:
                typer.echo(heading, err=True)
            start += snapshot.iteration == 1
            text = f"objective {snapshot.objective:.5g}  primal {snapshot.primal:.0e}  dual {snapshot.dual:.0e}"
            advance(snapshot.iteration, snapshot.max_iter, f"start {start}  {text}")

        model.set_params(callback=callback).fit(X)
    model.set_params(callback=None)


def _coder(
    model: "Learned",
    algorithm: str | None,
    n_nonzero_coefs: int | None,
    alpha: float | None,
    epsilon: float | None,
    missing: bool,
    jobs: int | None,
) -> "SparseCoder":
    """Build the coder that was asked for; what was left open is as the model has it, where the algorithm uses it."""
    from roadict.coders.pick import TAKES
    from roadict.estimators import ROAD, SparseCoder

    if isinstance(model, ROAD):
        own, count, weight = model.transform_algorithm, model.transform_n_nonzero_coefs, model.transform_alpha
        chosen: float | None = model.transform_alpha_
        marker = model.missing_values
    else:
        own, count, weight = model.transform_coder, model.n_nonzero_coefs, model.alpha
        chosen, marker = model.alpha_, None
    algorithm = own if algorithm is None else algorithm
    takes = TAKES.get(algorithm, ())
    if n_nonzero_coefs is None and alpha is None and epsilon is None:
        n_nonzero_coefs = count if "n_nonzero_coefs" in takes else None
        alpha = weight if "alpha" in takes else None
        if alpha is None and algorithm in ("lasso", "threshold"):
            alpha = chosen
    return SparseCoder(
        model.components_,
        algorithm=algorithm,
        n_nonzero_coefs=n_nonzero_coefs,
        alpha=alpha,
        epsilon=epsilon,
        missing_values=np.nan if missing else marker,
        n_jobs=jobs,
    )


def _report(model: "Learned") -> None:
    per_sample = (model.codes_ != 0).sum(axis=1).mean()
    unused = int((model.atom_usage_ == 0).sum())
    typer.echo(
        f"{model.stop_reason_} after {model.n_iter_} iterations: objective {model.objective_:.6g}, "
        f"relative error {model.error_:.2e}, {per_sample:.2f} coefficients per sample, "
        f"{unused} of {len(model.components_)} atoms unused"
    )


def _check_method(method: str) -> None:
    from roadict.updates.pick import UPDATES

    if method not in UPDATES:
        raise ValueError(f"--method {method} is not known; use road, {', '.join(UPDATES)}")


def _refuse(method: str, options: dict[str, Any]) -> None:
    """Refuse options that are given, but belong to other methods."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} does not belong to --method {method}; leave it out")


def _one_or_three(option: str, text: str) -> float | tuple[float, float, float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) != 3:
        raise ValueError(f"{option} {text} must be one number, or three with commas between them")
    return numbers[0], numbers[1], numbers[2]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _complain(text: str) -> None:
    print(f"roadict: error: {text}", file=sys.stderr)
