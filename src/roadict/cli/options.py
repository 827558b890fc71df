"""Arguments and options of the command line with their help: those of several commands, of learn and of encode."""

from pathlib import Path
from typing import Annotated

import typer

# Headings of the help, for commands with many options.
DATA = "Data"
DICTIONARY = "Dictionary"
NOISE = "Noise and sparsity"
SEARCH = "Search"
COMPUTATION = "Computation"
CODES = "Codes"
MODEL = "Model"
OUTPUT = "Output"
RESUMING = "Checkpoints"
RANKS = "Several processes (torchrun)"

# Several commands.
DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt.")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", help="Array to read from an .npz file that holds several.", rich_help_panel=DATA)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]
JobsOption = Annotated[
    int | None, typer.Option(help="Number of threads. Default: all cores.", rich_help_panel=COMPUTATION)
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file written by learn.")]

# learn
PartsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt; a folder of part-*.npy; a glob of .npy files.",
    ),
]
ModelOption = Annotated[
    Path, typer.Option("--output", "-o", help="Model file to write (.npz).", rich_help_panel=OUTPUT)
]
ComponentsOption = Annotated[
    str | None,
    typer.Option(
        "--components",
        "-k",
        metavar="N|A:B[:STEP]|auto",
        help="Number of atoms; or a range, or auto, of which hidden entries choose it. Default: twice the number of "
        "features.",
        rich_help_panel=DICTIONARY,
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        help="road, or a two-stage method: mod, ksvd, approximate-ksvd, simco, blotless, sequential, "
        "consistent-sequential.",
        rich_help_panel=DICTIONARY,
    ),
]
CoderOption = Annotated[
    str | None,
    typer.Option(help="two-stage: omp, lasso, ... Default: omp; none for sequential methods.", rich_help_panel=NOISE),
]
SparsityOption = Annotated[
    int | None,
    typer.Option(help="two-stage: coefficients per signal. Default: a tenth of the features.", rich_help_panel=NOISE),
]
FormulationOption = Annotated[str, typer.Option(help="road: constrained, lasso or inexact.", rich_help_panel=NOISE)]
EpsilonOption = Annotated[
    str,
    typer.Option(
        help="constrained: bound on the relative error, a number or auto (the noise level found in the data); "
        "0: noise-free.",
        rich_help_panel=NOISE,
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(
        help="lasso, sequential methods: weight of the sum of |codes|. Default for lasso: that of the noise level "
        "found in the data.",
        rich_help_panel=NOISE,
    ),
]
BetaOption = Annotated[
    str | None, typer.Option(help="inexact: one ridge weight, or three such as 200,300,250.", rich_help_panel=NOISE)
]
RhoOption = Annotated[
    str, typer.Option(help="road: ADMM penalty, a number, three for inexact, or auto.", rich_help_panel=SEARCH)
]
PositiveOption = Annotated[
    str | None, typer.Option(help="codes, atoms or both: what must not be negative.", rich_help_panel=DICTIONARY)
]
FixedOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="road: known atoms, one per row (.npy, .npz, .csv, .tsv or .txt); they stay, and count in -k.",
        rich_help_panel=DICTIONARY,
    ),
]
IterationsOption = Annotated[
    int | None,
    typer.Option(
        help="Maximum number of iterations of a start; its descent may have as many. Default: 2000 for road "
        "(inexact: 10000), else 100.",
        rich_help_panel=SEARCH,
    ),
]
TolOption = Annotated[
    float,
    typer.Option(help="Tolerance on relative residuals or changes; 0: run all iterations.", rich_help_panel=SEARCH),
]
StartsOption = Annotated[
    int | None, typer.Option(help="road: maximum number of starts; the best fit is returned.", rich_help_panel=SEARCH)
]
MissingOption = Annotated[
    bool, typer.Option("--missing", help="road: NaN, NA and empty cells are unobserved entries.", rich_help_panel=DATA)
]
EngineOption = Annotated[str, typer.Option(help="road: auto, reference, numba or cuda.", rich_help_panel=COMPUTATION)]
StabilityOption = Annotated[
    bool,
    typer.Option(
        "--stability",
        help="Measure how well each atom recurs in halves of the data, by four more fits.",
        rich_help_panel=OUTPUT,
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Random seed; same seed, same result.", rich_help_panel=COMPUTATION)
]
RankJobsOption = Annotated[
    int | None, typer.Option(help="Number of threads per process. Default: all cores.", rich_help_panel=COMPUTATION)
]
CheckpointOption = Annotated[
    Path | None, typer.Option(help="Checkpoint directory; lets an interrupted run resume.", rich_help_panel=RESUMING)
]
EveryOption = Annotated[
    str, typer.Option(help="Interval between checkpoints, such as 60s, 5min or 2h.", rich_help_panel=RESUMING)
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Resume from the last checkpoint, if there is one.", rich_help_panel=RESUMING)
]
CodesOption = Annotated[
    str,
    typer.Option(
        help="torchrun: parts (one file per process, next to the model) or gather (in the model).",
        rich_help_panel=RANKS,
    ),
]
TimeoutOption = Annotated[
    str,
    typer.Option(help="torchrun: timeout before an unresponsive process is considered dead.", rich_help_panel=RANKS),
]

# encode
CodesFileOption = Annotated[
    Path, typer.Option("--output", "-o", help="Codes to write: .npz (array codes) or .npy.", rich_help_panel=OUTPUT)
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="omp, mp, sp, cosamp, lasso, basis-pursuit, half or threshold; lasso_cd and lasso_lars are lasso. "
        "Default: the model's.",
        rich_help_panel=CODES,
    ),
]
CoefficientsOption = Annotated[
    int | None,
    typer.Option(
        "--n-nonzero-coefs",
        "-s",
        help="omp, mp, sp, cosamp, half: coefficients per sample. Default: the model's, or a tenth of the features.",
        rich_help_panel=CODES,
    ),
]
WeightOption = Annotated[
    float | None,
    typer.Option(
        help="lasso, half, threshold: sparsity weight. Default: the one chosen by learn.", rich_help_panel=CODES
    ),
]
BoundOption = Annotated[
    float | None,
    typer.Option(
        help="omp, mp, basis-pursuit: bound on the relative error of each sample, such as 0.05.", rich_help_panel=CODES
    ),
]
SparseOption = Annotated[
    bool,
    typer.Option(
        "--sparse",
        help="Write a sparse matrix, for scipy.sparse.load_npz (.npz): memory for nonzeros only.",
        rich_help_panel=OUTPUT,
    ),
]
EncodeMissingOption = Annotated[
    bool,
    typer.Option(
        "--missing", help="NaN, NA and empty cells are unobserved entries. Default: as in learn.", rich_help_panel=DATA
    ),
]
