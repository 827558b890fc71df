"""Who is answered: requests to the studio's own address, none from pages of other sites, and pages that have gone."""

import asyncio
import http.client
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from urllib.parse import urlsplit

import pytest

from roadict.studio.guard import Guard
from roadict.studio.leaving import LeaveQuietly

from .driving import Server


def answer(server, method, path, body=None, **headers):
    """Send a request with exactly these headers to a real studio; returns status, headers and text."""
    address = urlsplit(server.address)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
    for name, value in given.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, dict(response.getheaders()), text


UPLOAD = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n1,2\r\n--x--\r\n'


def upload(server, **headers):
    kind = {"Content_Type": "multipart/form-data; boundary=x"}
    return answer(server, "POST", "/gradio_api/upload", UPLOAD, **kind, **headers)


def uploads(server):
    """Files of the upload that a studio has taken; jobs of other tests may still write theirs, in other folders."""
    taken = [path for path in server.files() if "gradio" in path.parts and path.is_file()]
    return [path for path in taken if path.read_bytes() == b"1,2"]


def test_a_real_studio_answers_only_under_its_own_address(server):
    port = urlsplit(server.address).port
    for own in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert answer(server, "GET", "/config", Host=f"{own}:{port}")[0] == 200
    foreign = ["evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil:{port}"]
    for host in [*foreign, f"user@127.0.0.1:{port}", "[::1", ""]:
        status, headers, text = answer(server, "GET", "/config", Host=host, Origin=f"http://{host}")
        assert (status, "components" in text) == (403, False), host
        assert "access-control-allow-origin" not in {name.lower() for name in headers}
    assert text == f"The studio is at {server.address.rstrip('/')}, and answers under no other address.\n"


def test_studios_that_start_at_once_have_ports_of_their_own(needs_gradio, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:
        servers = list(pool.map(Server, folders))
    codes = [server.stop(signal.SIGTERM)[0] for server in servers]
    assert len({server.address for server in servers}) == 2
    assert codes == [128 + signal.SIGTERM] * 2


def test_a_real_studio_takes_nothing_from_other_sites(server):
    port = urlsplit(server.address).port
    status, _, _ = upload(server, Origin=f"http://127.0.0.1:{port}")
    assert status == 200
    held = uploads(server)
    assert held
    for origin in ("http://evil.example", f"http://evil.example:{port}", f"https://127.0.0.1:{port}", "null"):
        for status, headers, _ in (
            upload(server, Origin=origin),
            answer(server, "GET", "/config", Origin=origin),
            answer(server, "OPTIONS", "/gradio_api/upload", Origin=origin, Access_Control_Request_Method="POST"),
        ):
            assert status == 403, origin
            assert "access-control-allow-origin" not in {name.lower() for name in headers}
    assert uploads(server) == held


@pytest.mark.parametrize(
    ("host", "port", "given", "answered"),
    [
        ("127.0.0.1", 80, "localhost", True),
        ("::1", 7860, "[::1]:7860", True),
        ("Studio.lan", 7860, "studio.lan:7860", True),
        ("studio.lan", 7860, "192.168.1.5:7860", False),
        ("0.0.0.0", 7860, "192.168.1.5:7860", True),
        ("::", 7860, "[fe80::1]:7860", True),
        ("0.0.0.0", 7860, "evil.example:7860", False),
    ],
)
def test_other_addresses_to_listen_on_are_answered_too(host, port, given, answered):
    seen, sent = [], []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def send(message):
        sent.append(message)

    guard = Guard(app, host, port)
    for kind in ("http", "websocket"):
        asyncio.run(guard({"type": kind, "headers": [(b"host", given.encode())]}, None, send))
    assert seen == (["http", "websocket"] if answered else [])
    assert [message["type"] for message in sent] == (
        [] if answered else ["http.response.start", "http.response.body", "websocket.close"]
    )


def test_a_page_that_has_gone_is_answered_to_the_end_and_leaves_no_error(server):
    """If it did, the answer would be cut off here, and the studio would print a traceback."""
    port = urlsplit(server.address).port
    status, _, text = answer(server, "GET", "/gradio_api/queue/data?session_hash=gone", Host=f"127.0.0.1:{port}")
    assert status == 200
    assert "session_not_found" in text


def test_a_page_that_asked_for_its_events_twice_leaves_no_error(server):
    """As one does that is loaded again; else the studio would print a traceback."""
    page = {"data": [], "event_data": {"runs": []}, "fn_index": 0, "session_hash": "twice"}  # compares no runs
    kind = {"Content_Type": "application/json", "Host": urlsplit(server.address).netloc}
    status, _, _ = answer(server, "POST", "/gradio_api/queue/join", json.dumps(page).encode(), **kind)
    assert status == 200
    events = "/gradio_api/queue/data?session_hash=twice"
    assert "close_stream" in answer(server, "GET", events)[2]  # those of the request; then there are none
    asked = [http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=60) for _ in range(2)]
    answers = []
    for connection in asked:
        connection.request("GET", events)
        answers.append(connection.getresponse())
    time.sleep(0.3)  # until both wait for events
    for closing in (*answers, *asked):
        closing.close()
    time.sleep(0.5)  # until both have ended


async def _send(message):
    pass


@pytest.mark.parametrize(("path", "left"), [("/gradio_api/queue/data", True), ("/gradio_api/upload", False)])
@pytest.mark.parametrize(("key", "known"), [("here", True), ("other", False)])
def test_only_keys_of_the_page_are_taken_for_its_end(path, left, key, known):
    async def app(scope, receive, send):
        raise KeyError(key)

    scope = {"type": "http", "path": path, "query_string": b"session_hash=here"}
    with nullcontext() if left and known else pytest.raises(KeyError):
        asyncio.run(LeaveQuietly(app)(scope, None, _send))


@pytest.mark.parametrize(("path", "status"), [("/gradio_api/queue/data", 500), ("/gradio_api/upload", 404)])
def test_other_errors_are_not_hidden(path, status):
    cause = ValueError()
    cause.status_code = status

    async def app(scope, receive, send):
        raise RuntimeError from cause

    with pytest.raises(RuntimeError):
        asyncio.run(LeaveQuietly(app)({"type": "http", "path": path}, None, None))
