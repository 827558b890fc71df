"""How the arrays of a problem are padded and split among the programs of a GPU."""

from dataclasses import dataclass

WIDEST = 64
"""Features up to which the kernels of ``passes`` and ``eigen`` are used."""
MOST_FEATURES = 1024
PROGRAMS = 2048
"""Programs of a kernel that keep a large GPU busy."""
VECTOR_BYTES = 16
SMALLEST_PRODUCT = 16
"""Least side of the main matrices that Triton multiplies."""
SMALLEST_REST = 4
WIDEST_PART = 32
GRAM_TILE = 16
"""Samples of a product of matrices."""
BYTES_AT_ONCE = 2**28
"""Of the arrays that products of wide problems make on the way; there are up to six of them."""
TILE = 32
"""Samples are padded to whole tiles of this size."""
NUMBERS_PER_TILE = 512
MAX_CHUNKS = 16
SAMPLE_BLOCK = 512
"""Numbers per program of ``update_samples``."""


def power_of_two(number: int) -> int:
    """Return the next power of two."""
    return 1 << (number - 1).bit_length()


@dataclass(frozen=True)
class Layout:
    """A function of one problem's shape: neither the GPU nor the batch changes the order of a sum.

    Attributes
    ----------
    stride : int
        Features and padding, whole vectors of 16 bytes.
    width, n_parts : int
        Features are cut into so many parts of this width, a power of two.
    rows : int
        Samples and padding, whole tiles.
    tile, n_tiles : int
        Samples of a program, and how many such tiles there are.
    group, n_groups : int
        Atoms of a program, and how many such groups there are.
    main, rest : int
        Parts of the features in Gram matrices, powers of two; there is a second one where ``main`` < ``stride``.
    chunk, n_chunks : int
        Samples of a Gram matrix, and how many chunks there are.
    """

    stride: int
    width: int
    n_parts: int
    rows: int
    tile: int
    n_tiles: int
    group: int
    n_groups: int
    main: int
    rest: int
    chunk: int
    n_chunks: int

    @classmethod
    def of(cls, n_samples: int, n_features: int, n_atoms: int, itemsize: int) -> "Layout":
        """Choose the layout."""
        align = VECTOR_BYTES // itemsize
        stride = -(-n_features // align) * align
        width, n_parts = feature_parts(stride)
        rows = -(-max(n_samples, 1) // TILE) * TILE
        tile = max(1, min(TILE, NUMBERS_PER_TILE // width))
        n_tiles = rows // tile
        n_groups = min(-(-n_atoms // 4), power_of_two(max(1, PROGRAMS // n_tiles) + 1) // 2)
        group = -(-n_atoms // n_groups)
        n_chunks = 1 if stride > WIDEST else max(1, min(PROGRAMS // n_atoms, rows // (4 * TILE), MAX_CHUNKS))
        chunk = -(-rows // (n_chunks * TILE)) * TILE
        return cls(
            stride, width, n_parts, rows, tile, n_tiles, group, -(-n_atoms // group), *main_and_rest(stride), chunk,
            -(-rows // chunk),
        )  # fmt: skip

    @property
    def padded(self) -> int:
        """Features up to a power of two, at least what a product of matrices needs."""
        return max(SMALLEST_PRODUCT, power_of_two(self.stride))

    @property
    def eigen_warps(self) -> int:
        """Warps of a program of ``top_eigenvectors``."""
        return max(1, self.padded // 16)

    @property
    def wide(self) -> bool:
        """Whether Gram matrices are made without kernels of our own."""
        return self.stride > WIDEST

    @property
    def warps(self) -> int:
        """Warps of a program of ``update_blocks``; each has whole rows."""
        return max(1, min(8, self.tile * self.width // 128))

    @property
    def gram_warps(self) -> int:
        """Warps of a program of ``add_grams``."""
        return max(1, self.main * self.main // 1024)


def feature_parts(stride: int) -> tuple[int, int]:
    """Width and number of the parts of features: at most three, with as little padding as that allows.

    Examples
    --------
    >>> [feature_parts(stride) for stride in (12, 24, 36, 64, 80)]
    [(16, 1), (32, 1), (16, 3), (32, 2), (32, 3)]
    """
    choices = [(max(SMALLEST_PRODUCT, power_of_two(-(-stride // n))), n) for n in (1, 2, 3)]
    return min(choices, key=lambda choice: (choice[0] * choice[1], choice[0] > WIDEST_PART, choice[1]))


def main_and_rest(stride: int) -> tuple[int, int]:
    """Split features into two powers of two, where the second is not as large as the first.

    Examples
    --------
    >>> [main_and_rest(stride) for stride in (12, 24, 36, 60, 64)]
    [(16, 4), (16, 8), (32, 4), (64, 4), (64, 4)]
    """
    whole = max(SMALLEST_PRODUCT, power_of_two(stride))
    main = whole // 2
    rest = power_of_two(max(SMALLEST_REST, stride - main))
    return (main, rest) if main >= SMALLEST_PRODUCT and rest < main else (whole, SMALLEST_REST)


def state_bytes(n_problems: int, n_samples: int, n_features: int, n_atoms: int, itemsize: int) -> int:
    """Bytes that a batch takes on the device, all but small change."""
    layout = Layout.of(n_samples, n_features, n_atoms, itemsize)
    blocks = 2 * layout.rows * layout.stride * n_atoms
    pairs = 3 * layout.rows * n_atoms
    samples = (8 + layout.n_groups) * layout.rows * layout.stride
    grams = layout.n_chunks * n_atoms * layout.stride**2
    made = 6 * BYTES_AT_ONCE if layout.wide else 0
    return n_problems * itemsize * (blocks + pairs + samples + grams) + made
