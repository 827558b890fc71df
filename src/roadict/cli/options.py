"""Arguments and options of the command line with their help: what commands share, and the many of learn and encode."""

from pathlib import Path
from typing import Annotated

import typer

from roadict.engines.registry import ENGINES

# Several commands.
DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt.")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Name of the array in an .npz file with several.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]
JobsOption = Annotated[int | None, typer.Option(help="Threads. Default: all cores.")]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that learn wrote.")]

# learn
PartsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt; a folder of part-*.npy; a pattern of .npy files.",
    ),
]
ModelOption = Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")]
ComponentsOption = Annotated[
    int | None, typer.Option("--components", "-k", help="Number of atoms. Default: twice the features.")
]
MethodOption = Annotated[
    str,
    typer.Option(
        help="road, or a two-stage method: mod, ksvd, approximate-ksvd, simco, blotless, sequential, "
        "consistent-sequential."
    ),
]
CoderOption = Annotated[
    str | None, typer.Option(help="two-stage: omp, lasso, ...; default omp, none for the sequential ones.")
]
SparsityOption = Annotated[
    int | None, typer.Option(help="two-stage: coefficients per signal. Default: a tenth of the features.")
]
FormulationOption = Annotated[str, typer.Option(help="road: constrained, lasso or inexact.")]
EpsilonOption = Annotated[
    str, typer.Option(help="constrained: bound on the relative error, a number or auto; 0 is noise-free.")
]
AlphaOption = Annotated[
    float | None, typer.Option(help="lasso and the sequential methods: weight of the sum of |codes|.")
]
BetaOption = Annotated[str | None, typer.Option(help="inexact: one ridge weight or three, as 200,300,250.")]
RhoOption = Annotated[str, typer.Option(help="Penalty of the ADMM: a number, three for inexact, or auto.")]
IterationsOption = Annotated[
    int | None, typer.Option(help="Largest number of iterations. Default: 2000 for road, else 100.")
]
TolOption = Annotated[float, typer.Option(help="Bound on the relative residuals or changes; 0: run all iterations.")]
StartsOption = Annotated[int | None, typer.Option(help="Largest number of starts; the best is kept.")]
MissingOption = Annotated[bool, typer.Option("--missing", help="NaN and empty cells are unobserved entries.")]
EngineOption = Annotated[str, typer.Option(help=f"road: {', '.join(ENGINES)}.")]
SeedOption = Annotated[int | None, typer.Option(help="Same seed, same result.")]
RankJobsOption = Annotated[int | None, typer.Option(help="Threads (of each process). Default: all cores.")]
CheckpointOption = Annotated[
    Path | None, typer.Option(help="Folder to keep the run in, so that it can go on after a stop of any kind.")
]
EveryOption = Annotated[str, typer.Option(help="Time from one checkpoint to the next, as 60s, 5min or 2h.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on from the last checkpoint, if there is one; else start.")
]
CodesOption = Annotated[
    str, typer.Option(help="torchrun: codes in parts beside the model, one per process, or gather: in the model.")
]
TimeoutOption = Annotated[
    str, typer.Option(help="torchrun: time without an answer after which another process counts as lost.")
]

# encode
CodesFileOption = Annotated[Path, typer.Option("--output", "-o", help="Codes to write: .npz (as codes) or .npy.")]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="omp, mp, sp, cosamp, lasso, basis-pursuit, half or threshold. Default: as the model has it.",
    ),
]
CoefficientsOption = Annotated[
    int | None,
    typer.Option(
        "--n-nonzero-coefs",
        "-s",
        help="omp, mp, sp, cosamp, half: atoms per sample. Default: the model's, else a tenth of the features.",
    ),
]
WeightOption = Annotated[
    float | None,
    typer.Option(help="lasso, half, threshold: weight of the sparsity. Default: the one chosen when learning."),
]
BoundOption = Annotated[
    float | None,
    typer.Option(help="omp, mp, basis-pursuit: bound on the relative error of every sample, as 0.05."),
]
StillMissingOption = Annotated[
    bool, typer.Option("--missing", help="NaN and empty cells are unobserved entries. Default: as when learning.")
]
