"""Arguments and options of the command line with their help: those of several commands, of learn and of encode."""

from pathlib import Path
from typing import Annotated

import typer

# Several commands.
DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt.")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Array to read from an .npz file that holds several.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]
JobsOption = Annotated[int | None, typer.Option(help="Number of threads. Default: all cores.")]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file written by learn.")]

# learn
PartsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt; a folder of part-*.npy; a glob of .npy files.",
    ),
]
ModelOption = Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")]
ComponentsOption = Annotated[
    str | None,
    typer.Option(
        "--components",
        "-k",
        metavar="N|A:B[:STEP]|auto",
        help="Number of atoms; or a range, or auto, of which hidden entries choose it. Default: twice the number of "
        "features.",
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        help="road, or a two-stage method: mod, ksvd, approximate-ksvd, simco, blotless, sequential, "
        "consistent-sequential."
    ),
]
CoderOption = Annotated[
    str | None, typer.Option(help="two-stage: omp, lasso, ... Default: omp; none for sequential methods.")
]
SparsityOption = Annotated[
    int | None, typer.Option(help="two-stage: coefficients per signal. Default: a tenth of the features.")
]
FormulationOption = Annotated[str, typer.Option(help="road: constrained, lasso or inexact.")]
EpsilonOption = Annotated[
    str,
    typer.Option(
        help="constrained: bound on the relative error, a number or auto (the noise level found in the data); "
        "0: noise-free."
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(
        help="lasso, sequential methods: weight of the sum of |codes|. Default for lasso: that of the noise level "
        "found in the data."
    ),
]
BetaOption = Annotated[str | None, typer.Option(help="inexact: one ridge weight, or three such as 200,300,250.")]
RhoOption = Annotated[str, typer.Option(help="road: ADMM penalty, a number, three for inexact, or auto.")]
PositiveOption = Annotated[str | None, typer.Option(help="codes, atoms or both: what must not be negative.")]
FixedOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="road: known atoms, one per row (.npy, .npz, .csv, .tsv or .txt); they stay, and count in -k.",
    ),
]
IterationsOption = Annotated[
    int | None, typer.Option(help="Maximum number of iterations. Default: 2000 for road (inexact: 10000), else 100.")
]
TolOption = Annotated[float, typer.Option(help="Tolerance on relative residuals or changes; 0: run all iterations.")]
StartsOption = Annotated[int | None, typer.Option(help="road: maximum number of starts; the best fit is returned.")]
MissingOption = Annotated[bool, typer.Option("--missing", help="road: NaN, NA and empty cells are unobserved entries.")]
EngineOption = Annotated[str, typer.Option(help="road: auto, reference, numba or cuda.")]
StabilityOption = Annotated[
    bool,
    typer.Option("--stability", help="Measure how well each atom recurs in halves of the data, by four more fits."),
]
SeedOption = Annotated[int | None, typer.Option(help="Random seed; same seed, same result.")]
RankJobsOption = Annotated[int | None, typer.Option(help="Number of threads per process. Default: all cores.")]
CheckpointOption = Annotated[Path | None, typer.Option(help="Checkpoint directory; lets an interrupted run resume.")]
EveryOption = Annotated[str, typer.Option(help="Interval between checkpoints, such as 60s, 5min or 2h.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume from the last checkpoint, if there is one.")]
CodesOption = Annotated[
    str, typer.Option(help="torchrun: parts (one file per process, next to the model) or gather (in the model).")
]
TimeoutOption = Annotated[
    str, typer.Option(help="torchrun: timeout before an unresponsive process is considered dead.")
]

# encode
CodesFileOption = Annotated[Path, typer.Option("--output", "-o", help="Codes to write: .npz (array codes) or .npy.")]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="omp, mp, sp, cosamp, lasso, basis-pursuit, half or threshold; lasso_cd and lasso_lars are lasso. "
        "Default: the model's.",
    ),
]
CoefficientsOption = Annotated[
    int | None,
    typer.Option(
        "--n-nonzero-coefs",
        "-s",
        help="omp, mp, sp, cosamp, half: coefficients per sample. Default: the model's, or a tenth of the features.",
    ),
]
WeightOption = Annotated[
    float | None,
    typer.Option(help="lasso, half, threshold: sparsity weight. Default: the one chosen by learn."),
]
BoundOption = Annotated[
    float | None,
    typer.Option(help="omp, mp, basis-pursuit: bound on the relative error of each sample, such as 0.05."),
]
SparseOption = Annotated[
    bool,
    typer.Option("--sparse", help="Write a sparse matrix, for scipy.sparse.load_npz (.npz): memory for nonzeros only."),
]
EncodeMissingOption = Annotated[
    bool, typer.Option("--missing", help="NaN, NA and empty cells are unobserved entries. Default: as in learn.")
]
