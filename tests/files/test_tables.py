"""Matrices from files: supported formats, and errors with a place and a remedy."""

import contextlib
import csv
import io
import os
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from roadict.files import text as text_tables
from roadict.files.tables import TableError, position, read_matrix, read_rows

EXPECTED = np.array([[1.0, 2.5, -3e-2], [4.0, 5.0, 6.0]])
ROWS = (("1", "2.5", "-3e-2"), ("4", "5", "6"))


@pytest.fixture
def write(tmp_path):
    def write_file(contents, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return path

    return write_file


def assert_refused(path, message, key=None):
    with pytest.raises(TableError, match=message) as caught:
        read_matrix(path, key)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert "; " in text  # what is wrong; what to do


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   ", ", ", "; "])
@pytest.mark.parametrize("header", ["", "left,middle;right top\n", "# one two\n", '\n"a";,"c"\n\n'])
@pytest.mark.parametrize("name", ["table.csv", "table.TXT", "table.tsv"])
def test_separators_headers_and_extensions(write, separator, header, name):
    body = "\n".join(separator.join(row) for row in ROWS)
    np.testing.assert_array_equal(read_matrix(write(header + body, name)), EXPECTED)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_endings_byte_order_mark_and_blank_lines(write, ending, mark):
    text = ending.join(["", "  ", "1,2.5,-3e-2", "", "4,5,6", "   ", ""])
    found = read_matrix(write(mark + text.encode()))
    np.testing.assert_array_equal(found, EXPECTED)
    assert found.dtype == np.float64


def test_a_byte_order_mark_does_not_turn_numbers_into_a_header(write):
    np.testing.assert_array_equal(read_matrix(write(b"\xef\xbb\xbf7\n8\n")), [[7], [8]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,,3\n,5,\n", [[1, np.nan, 3], [np.nan, 5, np.nan]]),
        ("a,b\n,\n1,2\n", [[np.nan, np.nan], [1, 2]]),
        ("1\t2\n\t\n", [[1, 2], [np.nan, np.nan]]),
        ("nan;inf\n-Infinity; NaN \n", [[np.nan, np.inf], [-np.inf, np.nan]]),
        ('"1","2"\n"3",""\n', [[1, 2], [3, np.nan]]),
        ("5", [[5]]),
        ("1 2 3", [[1, 2, 3]]),
        ("x\n5\n6\n", [[5], [6]]),
        ("  1   2\n 3 4  \n", [[1, 2], [3, 4]]),
    ],
)
def test_empty_cells_special_values_and_small_tables(write, text, expected):
    np.testing.assert_array_equal(read_matrix(write(text)), np.array(expected, dtype=float))


@pytest.mark.parametrize("cell", ["NA", "N/A", "n/a", "<NA>", "#N/A", "NULL", "null", "None", '"NA"', " NA "])
def test_cells_that_say_that_a_number_is_missing(write, cell):
    np.testing.assert_array_equal(read_matrix(write(f"1,{cell}\n{cell},2\n")), [[1, np.nan], [np.nan, 2]])
    np.testing.assert_array_equal(read_matrix(write(f"a,b\n{cell},{cell}\n1,2\n")), [[np.nan] * 2, [1, 2]])


def test_sodium_is_not_missing(write):
    np.testing.assert_array_equal(read_matrix(write("Na,K\n1,2\n")), [[1, 2]])
    np.testing.assert_array_equal(read_matrix(write("NA,K\n1,2\n")), [[1, 2]])


def written_by_pandas(**frame):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(EXPECTED, **frame).to_csv()


@pytest.mark.parametrize(
    "text",
    [
        lambda: written_by_pandas(columns=["a", "b", "c"]),
        lambda: written_by_pandas(columns=["a", "b", "c"], index=["first", "second"]),
        lambda: written_by_pandas(index=[17, 3]),
        lambda: written_by_pandas(),
        lambda: '"","a","b","c"\n"1",1,2.5,-0.03\n"2",4,5,6\n',  # R
        lambda: ";a;b;c\n0;1;2.5;-0.03\n1;4;5;6\n",
    ],
)
def test_an_index_is_left_out_with_a_message(write, text):
    path = write(text())
    with pytest.warns(UserWarning, match=r"table\.csv has a first column without a name.*left out; name it"):
        np.testing.assert_array_equal(read_matrix(path), EXPECTED)
    assert position(path, 1, 0) == "line 3, column 2"


@pytest.mark.parametrize("first", [0, 1])
def test_a_named_column_that_counts_the_rows_is_kept_with_a_warning(tmp_path, first):
    file = tmp_path / "lab.csv"
    rows = [f"{i + first},{i * i % 7},{-i}" for i in range(12)]
    file.write_text("\n".join(["id,a,b", *rows]))
    counts = "first column that only counts the rows; delete it{} if it is an index"
    with pytest.warns(UserWarning, match=counts.format(", or its name in the header,")):
        assert read_matrix(file).shape == (12, 3)
    file.write_text("\n".join(rows))
    with pytest.warns(UserWarning, match=counts.format("")):
        assert read_matrix(file).shape == (12, 3)
    file.write_text("\n".join(["id,a,b", *rows[:5], *rows[6:]]))
    assert read_matrix(file).shape == (11, 3)  # warnings are errors


def test_an_index_does_not_hide_errors(write):
    text = ",a,b\n0,1,2\n1,3,{}\n"
    for cell, message in (("x", "'x' in line 3, column 3"), ("4,5", "4 cells in line 3 and 3 in its first row")):
        assert_refused(write(text.format(cell)), message)


@pytest.mark.parametrize("text", ["x,a\n0,1\n", ",1,0\n0,2,3\n", ",0,1\n,2,3\n", "0,1\n2,3\n"])
def test_other_first_columns_stay(write, text):
    assert read_matrix(write(text)).shape[1] == text.splitlines()[0].count(",") + 1


def test_positions_count_lines_or_rows_from_one(write, tmp_path):
    assert position(write("a,b\n\n1,2\n\n3,4\n"), 1, 1) == "line 5, column 2"
    assert position(write("1,2\n3,4\n"), 1) == "line 2"
    for index, n_rows in enumerate((3, 2)):
        np.save(tmp_path / f"part-{index}.npy", np.ones((n_rows, 2)))
    assert position(tmp_path / "part-0.npy", 2, 1) == "row 3, column 2"
    assert position(tmp_path, 4, 1) == "part-1.npy, row 2, column 2"


def test_plain_tables_take_the_fast_path_and_both_paths_agree(write, monkeypatch):
    values = np.random.default_rng(0).standard_normal((40, 7)) * 1e-7
    path = write("\n".join(",".join(map(repr, row)) for row in values.tolist()))
    slow = text_tables._read_cells(path, text_tables._find_layout(path))
    monkeypatch.setattr(text_tables, "_read_cells", None)
    np.testing.assert_array_equal(read_matrix(path), values)
    np.testing.assert_array_equal(slow, values)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(width=64)),
    separator=st.sampled_from([",", ";", "\t", " "]),
    header=st.booleans(),
    hide_nan=st.booleans(),
)
def test_written_tables_are_read_exactly(tmp_path, values, separator, header, hide_nan):
    def cell(value):
        hidden = hide_nan and value != value and separator != " " and values.shape[1] > 1
        return "" if hidden else repr(value)

    lines = [separator.join(f"column{k}" for k in range(values.shape[1]))] if header else []
    lines += [separator.join(map(cell, row)) for row in values.tolist()]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    np.testing.assert_array_equal(read_matrix(path), values)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=st.floats(width=64)),
    separator=st.sampled_from([",", ";", "\t", " "]),
    names=st.lists(st.text('a.,;\t "\r\n'), min_size=4, max_size=4),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_tables_with_quoted_headers_and_numbers_are_read_exactly(tmp_path, values, separator, names, quoting, ending):
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=ending)
        writer.writerow([f"x{name}" for name in names[: values.shape[1]]])
        writer.writerows(values.tolist())
    np.testing.assert_array_equal(read_matrix(path), values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a,b","c;d"\n1,2\n', [[1, 2]]),
        ('"a;b";"c,d"\n1;2\n', [[1, 2]]),
        ('"first name" "b"\n1   2\n', [[1, 2]]),
        ('"5"" disk","a ""b"" c"\r\n1,2\r\n"3","4"\r\n', [[1, 2], [3, 4]]),
        ('5" disk,6" disk\n1,2\n', [[1, 2]]),  # a quote within a cell means nothing
        ('"two\n\nlines",b\n1,2\n', [[1, 2]]),
        ('1, "2"\n "3" ,"4" \n', [[1, 2], [3, 4]]),
        ('1\t""\n" 3 "\t4\n', [[1, np.nan], [3, 4]]),
        ('"7"\n""\n', [[7], [np.nan]]),
    ],
)
def test_quotes(write, text, expected):
    np.testing.assert_array_equal(read_matrix(write(text)), np.array(expected, dtype=float))


LIMIT = csv.field_size_limit()


def test_rows_longer_than_a_cell_may_be(write):
    names, cells = ",".join(f'"column {k}"' for k in range(9000)), ",".join(["0.12345678901234567"] * 9000)
    assert len(cells) > LIMIT
    np.testing.assert_array_equal(read_matrix(write(f"{names}\n{cells}\n")), np.full((1, 9000), 0.12345678901234567))
    assert read_matrix(write(f"{names}\n{cells}\n{cells[:-19]}\n")).shape == (2, 9000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a,b\n1,2\n', "a quote in line 1 that is never closed; close or remove it"),
        ('1,2\n\n3,"4\n5,6\n', "a quote in line 3 that is never closed"),
        ('1,2\n3,"4', "a quote in line 2 that is never closed"),
        ('1 2\n3 "4', "a quote in line 2 that is never closed"),
        ('1,2\n3,"4\n' + "5,6\n" * LIMIT, f"a quote in line 2 that is not closed within {LIMIT} characters"),
        ("1,2\n3," + "x" * (LIMIT + 1), f"a cell of more than {LIMIT} characters in line 2, which is not a number"),
        ("x" * (LIMIT + 1) + "\n1\n", f"a cell of more than {LIMIT} characters in line 1"),
        ('"two\nlines",b\n1,2\n3,x\n', "'x' in line 4, column 2"),
        ('1,2\n3,"4,5"\n', "'4,5' in line 2, column 2, which is not a number; write decimals with a point"),
        ('1,2\n3,"a ""b"""\n', """'a "b"' in line 2, column 2"""),
        ('1,2\n"3\n4",5\n', r"'3\\n4' in line 2, column 1"),
    ],
)
def test_bad_quotes_and_long_cells_name_the_place(write, text, message):
    assert_refused(write(text), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,4,5\n", "3 cells in line 2 and 2 in its first row"),
        ("a,b\n1,2\n\n3\n", "1 cell in line 4 and 2"),
        ("1 2\n3\n", "1 cell in line 2"),
        ("1,2\n3,four\n", "'four' in line 2, column 2, which is not a number"),
        ("x,y\n1,2\nthree,4\n", "'three' in line 3, column 1"),
        ("x,2\n3,4\n", "'x' in line 1, column 1"),  # half a header is not a header
        ("a,b\nc,d\n1,2\n", "'c' in line 2, column 1"),
        ("1;2,5\n3;4\n", "'2,5' in line 1, column 2.*point"),
        ("1,2\n3,1_000\n", "'1_000' in line 2, column 2"),
        ("1,2\n3,٤\n", "'٤' in line 2, column 2"),
        ("1,2\n3,# 4\n", "'# 4' in line 2"),
        ("1,2\n3,4+2j\n", r"'4\+2j' in line 2"),
        ("1,2\n3," + "x" * 500 + "\n", r"'x{21}\.\.\.' in line 2"),
        ("1,2\n3,\x01\n", r"'\\x01' in line 2"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b\n", "no numbers, only 'a,b'"),
        ("<html>", "no numbers, only '<html>'"),
    ],
)
def test_bad_text_tables_name_the_place(write, text, message):
    assert_refused(write(text), message)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (np.random.default_rng(0).bytes(5000), "not text but binary"),
        (b"1,2\n3,\xe9\n", "not text in UTF-8"),
        (b"Gr\xf6\xdfe,b\n1,2\n", "not text in UTF-8"),
        ("1,2\n3,4\n".encode("utf-16"), "not text but binary"),
        (b"1,2\n" * 20_000 + b"3,\xe9\n", "not text in UTF-8"),
        (b"1,2\n" * 20_000 + b"3,\x00\n", "in line 20001, column 2"),
        (pickle.dumps([1.5]), "not text"),
    ],
)
def test_binary_files_are_refused(write, contents, message):
    assert_refused(write(contents), message)


DTYPES = [
    (np.float64, np.float64),
    (np.float32, np.float32),
    (np.float16, np.float32),
    (">f4", np.float32),
    (">f8", np.float64),
    (np.longdouble, np.float64),
    (np.int8, np.float64),
    (np.uint64, np.float64),
    (np.bool_, np.float64),
]


@pytest.mark.parametrize(("stored", "expected"), DTYPES)
def test_dtypes_of_arrays(tmp_path, stored, expected):
    values = np.asfortranarray(np.array([[0, 1, 1], [1, 0, 1]]).astype(stored))
    np.save(tmp_path / "a.npy", values)
    np.savez_compressed(tmp_path / "a.npz", signals=values)
    for found in (read_matrix(tmp_path / "a.npy"), read_matrix(str(tmp_path / "a.npz"))):
        assert found.dtype == np.dtype(expected)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, [[0, 1, 1], [1, 0, 1]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3), r"shape \(3,\), which is not a matrix; reshape"),
        (np.array(3.0), r"shape \(\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((0, 4)), r"empty matrix of shape \(0, 4\)"),
        (np.ones((4, 0)), r"empty matrix of shape \(4, 0\)"),
        (np.eye(2) * 1j, "complex numbers"),
        (np.array([["a"]]), "holds text"),
        (np.array([[b"a"]]), "holds text"),
        (np.array([["2020-01-01"]], "M8[D]"), "holds dates"),
        (np.zeros((1, 1), [("a", float)]), "holds records"),
        (np.array([[None]]), "pickled objects"),
    ],
)
def test_arrays_that_are_not_matrices_of_numbers(tmp_path, values, message):
    np.save(tmp_path / "a.npy", values, allow_pickle=True)
    np.savez(tmp_path / "a.npz", values)
    assert_refused(tmp_path / "a.npy", message)
    assert_refused(tmp_path / "a.npz", message)


def test_pickles_are_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    objects = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", objects)
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npy", "a.npz", "b.npy", "b.npz"):
        assert_refused(tmp_path / name, "pickled objects|is not")
    assert not (tmp_path / "exploded").exists()


def test_keys_of_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, one=np.eye(2), two=np.eye(3))
    assert read_matrix(path, "two").shape == (3, 3)
    assert_refused(path, r"holds 2 arrays \(one, two\); pass one")
    assert_refused(path, "no array 'three'; choose one of: one, two", key="three")
    np.savez(path, **{f"a{k}": np.eye(1) for k in range(40)})
    assert_refused(path, r"40 arrays \(a0, .*a11, \.\.\.\)")
    np.savez(path)
    assert_refused(path, "holds no arrays")
    np.save(tmp_path / "a.npy", np.eye(2))
    assert_refused(tmp_path / "a.npy", "key='x'", key="x")


@pytest.mark.parametrize("compress", [np.savez, np.savez_compressed])
def test_damaged_arrays_are_refused(tmp_path, compress):
    values = np.random.default_rng(0).standard_normal((8, 5))
    stream = io.BytesIO()
    compress(stream, signals=values)
    raw = stream.getvalue()
    path = tmp_path / "a.npz"
    for length in range(0, len(raw), 7):
        path.write_bytes(raw[:length])
        assert_refused(path, "is not an .npz|damaged or cut short")
    for place in range(2, len(raw), 3):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0xFF]) + raw[place + 1 :])
        with contextlib.suppress(TableError):  # refused, or harmless
            np.testing.assert_array_equal(read_matrix(path), values)


def test_archives_with_a_changed_shape_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, np.ones((80, 500)))
    raw = path.read_bytes()
    assert raw.count(b"(80, 500)") == 1
    for shape in (b"(10, 500)", b"(90, 500)", b"(50, 800)"):  # fewer, more and the same number of bytes
        path.write_bytes(raw.replace(b"(80, 500)", shape))
        assert_refused(path, "damaged")


def test_truncated_npy_files_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones((8, 5)))
    raw = path.read_bytes()
    for length in (*range(0, 200, 3), len(raw) - 1):
        path.write_bytes(raw[:length])
        assert_refused(path, "is not a NumPy|damaged or cut short")


def test_wrong_names(tmp_path, write):
    assert_refused(write("1,2\n", "table.xlsx"), r"extension '\.xlsx'; .*\.npy, \.npz, \.csv")
    assert_refused(write("1,2\n", "table"), "no extension")
    assert_refused(write("1,2\n", "table.npy"), "is not a NumPy array file")
    assert_refused(write("1,2\n", "table.npz"), r"is not an \.npz archive")
    for name in ("none.csv", "none.npy", "none.npz"):
        with pytest.raises(FileNotFoundError):
            read_matrix(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        read_matrix(tmp_path / "folder.csv")


# ---- shares of ranks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 9])
@pytest.mark.parametrize("kind", ["rows.npy", "rows.npz", "rows.csv", "parts", "parts/part-*.npy"])
def test_the_shares_of_all_ranks_are_all_rows_in_order(tmp_path, kind, size):
    rows = np.random.default_rng(0).standard_normal((7, 3))
    np.save(tmp_path / "rows.npy", rows)
    np.savez(tmp_path / "rows.npz", rows=rows)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",")
    (tmp_path / "parts").mkdir()
    for index, part in enumerate(np.split(rows, [1, 5])):
        np.save(tmp_path / "parts" / f"part-{index}.npy", part)
    shares = [read_rows(tmp_path / kind, None, rank, size) for rank in range(size)]
    np.testing.assert_allclose(np.concatenate(shares), rows, rtol=1e-15)
    assert {share.shape[1] for share in shares} == {3}
    lengths = [len(share) for share in shares]
    assert max(lengths) < 7 or size == 1
    if not kind.startswith("parts"):
        assert max(lengths) - min(lengths) <= 1


def test_a_share_of_a_bad_file_is_refused_by_every_rank(tmp_path):
    np.save(tmp_path / "good.npy", np.ones((4, 2)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "good.npy").read_bytes()[:-20])
    np.save(tmp_path / "objects.npy", np.array([[1, {}], [2, 3]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.ones(4))
    (tmp_path / "text.npy").write_text("1,2")
    for rank in (0, 1):
        for name, message in (
            ("cut.npy", "damaged or cut short"),
            ("objects.npy", "pickled objects"),
            ("flat.npy", "not a matrix"),
            ("text.npy", "not a NumPy array file"),
        ):
            with pytest.raises(TableError, match=message):
                read_rows(tmp_path / name, None, rank, 2)
