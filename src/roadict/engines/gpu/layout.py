"""Padding and partition of a problem's arrays among the programs of a GPU."""

from dataclasses import dataclass

MAX_KERNEL_FEATURES = 64
"""Maximum number of features for the Gram and eigenvector kernels; beyond, ``wide`` is used."""
MAX_FEATURES = 1024
TARGET_PROGRAMS = 2048
"""Number of programs that occupies a large GPU."""
VECTOR_BYTES = 16
MIN_PRODUCT = 16
"""Minimum side of the main matrices that Triton multiplies."""
MIN_REST = 4
MAX_PART = 32
GRAM_TILE = 16
"""Samples per matrix product."""
MAX_TEMPORARY_BYTES = 2**28
"""Maximum size of a temporary array in products of wide problems, of which there are up to six."""
TILE = 32
"""Samples are padded to a multiple of this."""
NUMBERS_PER_TILE = 512
MAX_CHUNKS = 16
SAMPLE_BLOCK = 512
"""Numbers per program of ``update_samples``."""


def power_of_two(number: int) -> int:
    """Return the next power of two."""
    return 1 << (number - 1).bit_length()


@dataclass(frozen=True)
class Layout:
    """Layout of one problem; it depends on the shape only, so that GPU and batch do not affect the order of sums.

    Attributes
    ----------
    stride : int
        Features padded to vectors of 16 bytes.
    width, n_parts : int
        Features are split into ``n_parts`` parts of this width, a power of two.
    rows : int
        Samples padded to whole tiles.
    tile, n_tiles : int
        Samples per program, and number of tiles.
    group, n_groups : int
        Atoms per program, and number of groups.
    main, rest : int
        Parts of the features in Gram matrices, powers of two; ``rest`` is used if ``main`` < ``stride``.
    chunk, n_chunks : int
        Samples per Gram matrix or image, and number of chunks.
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
        n_groups = min(-(-n_atoms // 4), power_of_two(max(1, TARGET_PROGRAMS // n_tiles) + 1) // 2)
        group = -(-n_atoms // n_groups)
        n_chunks = max(1, min(TARGET_PROGRAMS // n_atoms, rows // (4 * TILE), MAX_CHUNKS))
        n_chunks = 1 if stride > MAX_KERNEL_FEATURES else n_chunks
        chunk = -(-rows // (n_chunks * TILE)) * TILE
        return cls(
            stride, width, n_parts, rows, tile, n_tiles, group, -(-n_atoms // group), *main_and_rest(stride), chunk,
            -(-rows // chunk),
        )  # fmt: skip

    @property
    def padded(self) -> int:
        """Features padded to a power of two, at least the minimum of a matrix product."""
        return max(MIN_PRODUCT, power_of_two(self.stride))

    @property
    def eigen_warps(self) -> int:
        """Warps per program of ``top_eigenvectors``."""
        return max(1, self.padded // 16)

    @property
    def wide(self) -> bool:
        """Whether Gram matrices are computed by PyTorch instead of our kernels."""
        return self.stride > MAX_KERNEL_FEATURES

    @property
    def warps(self) -> int:
        """Warps per program of ``update_blocks``; each has complete rows."""
        return max(1, min(8, self.tile * self.width // 128))

    @property
    def gram_warps(self) -> int:
        """Warps per program of ``add_grams``."""
        return max(1, self.main * self.main // 1024)


def feature_parts(stride: int) -> tuple[int, int]:
    """Width and number of the parts of features: up to three, with the least padding.

    Examples
    --------
    >>> [feature_parts(stride) for stride in (12, 24, 36, 64, 80)]
    [(16, 1), (32, 1), (16, 3), (32, 2), (32, 3)]
    """
    choices = [(max(MIN_PRODUCT, power_of_two(-(-stride // n))), n) for n in (1, 2, 3)]
    return min(choices, key=lambda choice: (choice[0] * choice[1], choice[0] > MAX_PART, choice[1]))


def main_and_rest(stride: int) -> tuple[int, int]:
    """Split features into two powers of two, if the second is smaller than the first.

    Examples
    --------
    >>> [main_and_rest(stride) for stride in (12, 24, 36, 60, 64)]
    [(16, 4), (16, 8), (32, 4), (64, 4), (64, 4)]
    """
    whole = max(MIN_PRODUCT, power_of_two(stride))
    main = whole // 2
    rest = power_of_two(max(MIN_REST, stride - main))
    return (main, rest) if main >= MIN_PRODUCT and rest < main else (whole, MIN_REST)


def state_bytes(
    n_problems: int, n_samples: int, n_features: int, n_atoms: int, itemsize: int, *, with_grams: bool = True
) -> int:
    """Device memory of a batch in bytes, without small arrays; for nonnegative codes there are no Gram matrices."""
    layout = Layout.of(n_samples, n_features, n_atoms, itemsize)
    blocks = 2 * layout.rows * layout.stride * n_atoms
    pairs = 3 * layout.rows * n_atoms
    samples = (8 + layout.n_groups) * layout.rows * layout.stride
    grams = layout.n_chunks * n_atoms * layout.stride**2 if with_grams else 0
    temporary = 6 * MAX_TEMPORARY_BYTES if layout.wide and with_grams else 0
    return n_problems * itemsize * (blocks + pairs + samples + grams) + temporary
