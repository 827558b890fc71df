"""The parts of the studio, without a browser."""

import io
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from roadict.drawing.charts import Mark
from roadict.studio import comparison, drawings, inputs, jobs, panels, samples, server
from roadict.studio.commands import TASKS, Command, learn_command, picture_command
from roadict.studio.folder import own_folder
from roadict.studio.server import serve


@pytest.mark.parametrize(
    "command",
    [
        *(picture_command(task, "-odd 'name'.png", scale=2, sigma=12.5, mask="-m.png", seed=3) for task in TASKS),
        learn_command("-d.csv", n_components=4, epsilon=0.1, missing=True, seed=1),
        learn_command("d.npy", method="ksvd", sparsity=2),
        learn_command("d.npy", positive="both", fixed="-odd 'name'.csv"),
        learn_command("d.npy", n_components="auto", stability=True),
        learn_command("d.npy", n_components="8:16:2"),
    ],
)
def test_commands_are_those_of_the_command_line(command, tmp_path, monkeypatch, roadict):
    """They fail only because of the missing file."""
    monkeypatch.chdir(tmp_path)
    assert "does not exist" in roadict(*command.arguments).err


def test_options_reach_the_command():
    assert picture_command("upscale", "a.jpg", scale=4, seed=7).text() == (
        "roadict upscale a.jpg -o a-enlarged.png --scale 4 --seed 7"
    )
    assert "--mask m.png" in picture_command("inpaint", "a.png", mask="m.png").text()
    assert "--mask" not in picture_command("inpaint", "a.png").text()
    assert "--sigma" not in picture_command("denoise", "a.png").text()
    assert learn_command("a.csv", positive="atoms", fixed="-k.csv").text() == (
        "roadict learn a.csv -o a-model.npz --positive atoms --fixed ./-k.csv --seed 0"
    )


@pytest.mark.parametrize(("text", "value"), [("", None), ("auto", None), ("0", 0.0), (" 2.5", 2.5)])
def test_fields_hold_numbers_or_nothing(text, value):
    assert inputs.parse_number("Noise", text) == value


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "many"])
def test_other_text_in_a_field_is_refused(text):
    with pytest.raises(ValueError, match=f"Noise is {text}; it must be a number of 0 or more"):
        inputs.parse_number("Noise", text)


def test_counts_are_whole_numbers():
    assert inputs.parse_count("Atoms", "12") == 12
    with pytest.raises(ValueError, match=r"Atoms is 1\.5; it must be a whole number of at least 1"):
        inputs.parse_count("Atoms", "1.5")
    with pytest.raises(ValueError, match="Atoms is 0; it must be"):
        inputs.parse_count("Atoms", "0")


def test_files_are_named_without_their_folder(tmp_path):
    (tmp_path / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ValueError, match=r"^cut\.png "):
        inputs.read_picture(tmp_path / "cut.png")
    (tmp_path / "words.csv").write_text("one,two\n")
    with pytest.raises(ValueError, match=r"^words\.csv "):
        inputs.read_table(tmp_path / "words.csv")


def test_files_and_problems_that_are_too_large_are_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "data.npy", np.zeros((10, 10)))
    assert inputs.read_table(tmp_path / "data.npy").shape == (10, 10)
    monkeypatch.setattr(inputs, "MAX_TABLE_BYTES", 900)
    with pytest.raises(ValueError, match=r"data\.npy has more than"):
        inputs.read_table(tmp_path / "data.npy")
    with pytest.raises(ValueError, match="use the command line"):
        inputs.check_state((10_000, 101), 100)
    inputs.check_state((10_000, 100), 100)
    inputs.check_state((10_000, 101), 10_000, blocks=False)
    with pytest.raises(ValueError, match=r"^10001 atoms × 10000 signals make 100,010,000 numbers"):
        inputs.check_state((10_000, 101), 10_001, blocks=False)


def test_numbers_are_those_that_were_typed():
    assert inputs.parse_count("Seed", "9007199254740993") == 9007199254740993
    assert inputs.parse_count("Seed", "1e3") == 1000
    for text in ("abc", "0", "-1", "1.5", "nan", "inf"):
        with pytest.raises(ValueError, match=rf"^Atoms is {text}; it must be a whole number of at least 1, or auto$"):
            inputs.parse_count("Atoms", text)
    bound = inputs.parse_number("Error bound", "0.12345678")
    assert "--epsilon 0.12345678 " in learn_command("data.npy", epsilon=bound).text()


def test_a_damaged_picture_is_not_too_large_but_damaged(tmp_path):
    path = tmp_path / "cut.png"
    Image.new("L", (20, 20)).save(path)
    header = b"IHDR" + path.read_bytes()[16:21]  # shorter than headers are
    path.write_bytes(path.read_bytes()[:8] + struct.pack(">I", 5) + header + struct.pack(">I", zlib.crc32(header)))
    assert not inputs.is_too_large(path)
    with pytest.raises(ValueError, match=r"^cut\.png is damaged or cut short"):
        inputs.read_picture(path)


def test_pictures_and_tables_that_are_read_at_once_keep_warnings_apart(tmp_path):
    """As three handlers of a page do when a picture is dropped."""
    Image.fromarray(np.zeros((500, 500), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "a.csv").write_text(",x,y\n0,1.5,2\n1,2.5,1\n2,1,3\n")
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        pictures = [
            pool.submit(read, tmp_path / "a.png")
            for read in (inputs.read_picture, inputs.is_too_large, inputs.read_mask) * 30
        ]
        tables = [pool.submit(inputs.read_table_and_notes, tmp_path / "a.csv") for _ in range(30)]
    assert all(len(table.result()[1]) == 1 for table in tables)
    assert len([picture.result() for picture in pictures]) == 90
    assert warnings.filters == before


def test_files_of_the_other_tab_are_sent_there(tmp_path):
    for name in ("a.csv", "a.png", "a.gif"):
        (tmp_path / name).write_bytes(b"1")
    with pytest.raises(ValueError, match=r"a\.csv is a table and no picture; open it in the tab “Signals”"):
        inputs.read_picture(tmp_path / "a.csv")
    for name in ("a.png", "a.gif"):
        with pytest.raises(ValueError, match="; open it in the tab “Pictures”"):
            inputs.read_table(tmp_path / name)
    np.save(tmp_path / "line.npy", np.arange(3.0))
    with pytest.raises(ValueError, match=r"reshape it to \(signals, entries\)"):
        inputs.read_table(tmp_path / "line.npy")


def test_the_names_of_curves_are_within_the_chart():
    for names in (("code change", "atom change", "data error"), ("primal", "dual", "stationarity", "data error")):
        drawn = drawings.residual_curves({name: np.array([1.0, 0.1]) for name in names}, (), 1e-4)
        placed = {label.text: label for label in ElementTree.fromstring(drawn).iter("text") if label.text in names}
        assert placed.keys() == {*names}
        ends = [float(label.get("x")) + 6.5 * len(name) for name, label in placed.items()]
        assert max(ends) <= drawings.WIDTH


def test_archives_are_refused(tmp_path):
    np.savez(tmp_path / "data.npz", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"data\.npz is none of \.npy, \.csv"):
        inputs.read_table(tmp_path / "data.npz")


def test_a_mask_of_the_same_name_does_not_replace_the_picture(tmp_path):
    for folder in ("job", "one", "two"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one" / "a.png").write_text("picture")
    (tmp_path / "two" / "a.png").write_text("mask")
    name = inputs.copy_upload(tmp_path / "one" / "a.png", tmp_path / "job")
    other = inputs.copy_upload(tmp_path / "two" / "a.png", tmp_path / "job", taken=(name,))
    assert (tmp_path / "job" / name).read_text() == "picture"
    assert (tmp_path / "job" / other).read_text() == "mask"


def test_sixteen_bits_are_shown_by_their_upper_half():
    assert np.asarray(inputs.for_screen(np.array([[0, 65535, 0x1234]], np.uint16))).tolist() == [[0, 255, 0x12]]


def test_missing_pixels_are_marked_and_small_pictures_enlarged_for_the_slider(tmp_path):
    grey = np.full((8, 8), 50, np.uint8)
    mask = np.zeros((8, 8), np.uint8)
    mask[2, 3] = 255
    for name, pixels in {
        "a.png": grey,
        "m.png": mask,
        "a-filled.png": grey,
        "a-enlarged.png": np.tile(grey, (2, 2)),
    }.items():
        Image.fromarray(pixels).save(tmp_path / name)
    fill = jobs.Job(picture_command("inpaint", "a.png", mask="m.png"), tmp_path, "me")
    filled = comparison.compare(tmp_path / "a.png", fill, "inpaint")
    before, after = (np.asarray(Image.open(path)) for path in filled.save(tmp_path))
    assert before[2, 3].tolist() == [0xD1, 0x60, 0x1F]
    assert (before == after).all(axis=2).sum() == 63
    assert 'data-mark="#d1601f"' in filled.loupe("#slider", tmp_path)
    enlarge = jobs.Job(picture_command("upscale", "a.png", scale=2), tmp_path, "me")
    shown = comparison.compare(tmp_path / "a.png", enlarge, "upscale").save(tmp_path)
    assert [np.asarray(Image.open(path)).shape for path in shown] == [(16, 16, 3)] * 2


def test_transparent_pictures_are_shown_on_white():
    clear = Image.fromarray(np.array([[[10, 20, 30, 0], [10, 20, 30, 255]]], np.uint8))
    assert np.asarray(comparison.opaque(clear)).tolist() == [[[255, 255, 255], [10, 20, 30]]]


def test_drawings_are_well_formed():
    falling = (10 * 0.9 ** np.arange(2000)).tolist()
    drawn = [
        drawings.objective_curve([falling, [3.0, 3.0, 3.0]]),
        drawings.objective_curve([[1.0, 1.0]]),
        drawings.residual_curves({"primal": np.array([1.0, 0.0, 0.1]), "dual": np.array([1.0, np.nan, 2.0])}),
        drawings.usage_bars(np.array([0.0, 0.5, 0.25])),
        drawings.atoms_picture(np.eye(5)),
    ]
    for text in drawn:
        ElementTree.fromstring(text)
        assert "nan" not in text
    assert drawings.objective_curve([]) == drawings.objective_curve([[1.0]])
    assert len(drawn[0]) < 20_000  # long runs are thinned


def test_a_marked_point_lies_beyond_the_curves():
    curve = np.array([1.0, 0.1, 0.01])
    root = ElementTree.fromstring(drawings.residual_curves({"error": curve}, [Mark(4, 1e-11, "finished fit")]))
    (ring, label) = root.find("g[@class='mark c0']")
    (path,) = (tag.get("d") for tag in root.findall("path[@class='line c0']") if "h" not in tag.get("d"))
    points = np.array(re.findall(r"([\d.]+) ([\d.]+)", path), float)
    assert label.text == "finished fit"
    steps = np.diff([*points, (float(ring.get("cx")), float(ring.get("cy")))], axis=0)
    assert steps[:, 0] == pytest.approx(steps[0, 0], abs=0.05)  # one iteration each
    assert steps[:, 1] == pytest.approx(steps[0, 1] * np.array([1, 1, 9]), abs=0.1)  # decades


def test_bars_are_as_high_as_the_usage_and_fall():
    root = ElementTree.fromstring(drawings.usage_bars(np.array([0.1, 0.4, 0.2])))
    heights = [float(bar.get("height")) for bar in root.find("g[@class='bars c1']")]
    assert heights == pytest.approx([heights[0], heights[0] / 2, heights[0] / 4], abs=0.1)


def test_square_atoms_become_tiles_with_gaps_between():
    atoms = np.array([[1.0, -1.0, 0.0, 0.5], [0.0, 0.0, 0.0, 2.0]])
    address = drawings.atoms_picture(atoms).split('src="')[1].split('"')[0]
    grey, alpha = np.moveaxis(np.asarray(Image.open(io.BytesIO(b64decode(address.split(",")[1])))), 2, 0)
    assert grey.shape == (2, 5)
    assert grey[:, :2].tolist() == [[255, 0], [128, 191]]
    assert grey[:, 3:].tolist() == [[128, 128], [128, 255]]
    assert alpha.tolist() == [[255, 255, 0, 255, 255]] * 2


def test_text_from_outside_is_escaped():
    job = jobs.Job(Command((), "x"), None, "me")
    job.status.lines = ["<b>message</b>", "roadict: warning: <i>warning</i>"]
    for shown in (panels.error("<script>"), panels.done(job)):
        assert not re.search("<(script|b|i)>", shown)


@pytest.mark.parametrize("make", [samples.picture_samples, samples.signal_samples])
def test_samples_can_be_read(make, tmp_path):
    made = make(tmp_path)
    assert len({sample.file for sample in made}) == len(made)
    for sample in made:
        (inputs.read_table if sample.task == "learn" else inputs.read_picture)(sample.file)


def test_the_panel_shows_the_messages_of_the_command_until_there_is_progress():
    job = jobs.Job(Command((), "x"), None, "me")
    job.state = "running"
    assert "Starting" in panels.progress(job, 0)
    job.status.read("training on 12 pictures, once")
    assert "training on 12 pictures, once" in panels.progress(job, 0)


def test_folders_of_running_studios_are_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "roadict-studio-of-another").mkdir()
    with own_folder() as first:
        with own_folder() as second:
            assert first != second
            assert first.is_dir()
        assert not second.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["roadict-studio-of-another"]


def test_the_folder_of_a_killed_studio_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = "from roadict.studio.folder import own_folder\n"
    program += "with own_folder() as folder:\n (folder / 'file').touch(); print(folder, flush=True); input()"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        left = Path(process.stdout.readline().strip())
        with own_folder():
            assert (left / "file").exists()
        process.kill()
    assert left.exists()
    with own_folder() as folder:
        assert sorted(tmp_path.iterdir()) == [folder, folder.with_suffix(".lock")]


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("127.0.0.1", 0, "--port 0 must be between 1 and 65535"),
        ("127.0.0.1", 70000, "--port 70000 must be between 1 and 65535"),
        ("no such host", None, "--host no such host is no address"),
    ],
)
def test_bad_addresses_are_refused(host, port, message, monkeypatch):
    monkeypatch.setattr("roadict.studio.server.require", lambda *modules, extra: None)
    with pytest.raises(ValueError, match=message):
        serve(host, port, open_browser=False, message=print)


def test_a_port_that_is_taken_is_refused(monkeypatch):
    monkeypatch.setattr("roadict.studio.server.require", lambda *modules, extra: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"port {port} \(.+\); choose another with --port"):
            serve("127.0.0.1", port, open_browser=False, message=print)


def test_a_port_must_be_free_at_127_0_0_1_for_other_hosts_too():
    """Gradio asks for it, whatever the host."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"port {port} \(.+\); choose another with --port"):
            server._free_port("::1", port)
    assert server._free_port("::1", port) == port


def test_an_address_of_another_machine_is_refused_as_such():
    with pytest.raises(ValueError, match=r"--host 192\.0\.2\.1 is no address of this machine; use 127\.0\.0\.1"):
        server._free_port("192.0.2.1", None)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nobody can create files")
def test_past_runs_go_elsewhere_where_their_folder_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "roadict").mkdir()
    (tmp_path / "roadict" / "studio").symlink_to("/proc/self")
    told = []
    assert server._store(tmp_path / "own", told.append) == tmp_path / "own" / "past"
    assert told[0].startswith("past runs are forgotten when the studio stops, as they cannot be saved: ")


@pytest.mark.skipif(os.name == "nt", reason="needs SIGHUP")
def test_a_studio_started_by_nohup_survives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with server._stopped_by_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_jobs_hear_stop_and_keep_where_the_studio_itself_ignores_interrupts():
    """As in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with server._stopped_by_signals():
            program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "True\n"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_index_that_is_left_out_is_told_without_the_folder(tmp_path):
    (tmp_path / "a.csv").write_text(",x,y\n0,1,2\n1,3,4\n")
    data, notes = inputs.read_table_and_notes(tmp_path / "a.csv")
    assert data.tolist() == [[1, 2], [3, 4]]
    assert [note.startswith("a.csv has a first column without a name") for note in notes] == [True]


def test_only_errors_are_forgotten():
    assert panels.is_error(panels.error("x"))
    assert not panels.is_error(panels.idle("Nothing has run yet", "x"))
