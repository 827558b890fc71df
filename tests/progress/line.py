"""What the line of a fit is written to, and what it shows."""

import io


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Reading:
    max_iter, objective, residuals, start, n_starts = 200, 12.5, {"primal": 1e-2, "dual": 1e-3}, 2, 4
    stage = "search"

    def __init__(self, iteration):
        self.iteration, self.share = iteration, iteration / 1000
