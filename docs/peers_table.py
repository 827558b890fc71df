"""Write the table of packages on README's first screen, which the home page includes: python docs/peers_table.py

Errors and times are those of one problem in the section "ROAD beside its peers" of benchmarks/RESULTS.md, where the
others have as many starts as ROAD's CPU seconds allow. What the packages can do is told by their sources, in the
versions that this section names.
"""

from pathlib import Path

import blocks
from charts import beside_peers

from roadict.files.atomic import atomic_write

README = Path(__file__).parents[1] / "README.md"
PROBLEM = {"(M, K, S)": "(16, 32, 3)", "N": "200"}
HEADER = ["", "error of the atoms", "CPU seconds", "missing data", "noise level from the data"]
HEADER += ["number of atoms from the data", "nonnegative", "streams", "GPU"]
ABILITIES = {
    "ROAD": ("yes", "yes", "yes", "yes", "yes", "yes"),
    "scikit-learn": ("no", "no", "no", "yes", "yes", "no"),
    "SPAMS": ("codes only", "no", "no", "yes", "yes", "no"),
    "SPORCO": ("yes", "no", "no", "yes", "convolutional", "convolutional"),
    "dictlearn": ("no", "no", "no", "yes", "yes", "no"),
}


def table():
    """Return the table as Markdown."""
    found = [(learner, row) for learner, row in beside_peers() if PROBLEM.items() <= row.items()]
    measured = {learner: [row["mean error"], row["CPU seconds"]] for learner, row in found}
    lines = [[name, *measured[name], *can] for name, can in ABILITIES.items()]
    lines[0][0] = "**roadict**"
    return "\n".join("| " + " | ".join(line) + " |" for line in [HEADER, ["---"] * len(HEADER), *lines])


def main() -> None:
    """Put it into its block."""
    text = blocks.replaced(README.read_text(encoding="utf-8"), "peers", table())
    with atomic_write(README) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
