"""The studio's server: on this machine and for this machine; only past runs stay, for a week."""

import errno
import os
import signal
import socket
import sys
import tempfile
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from roadict.drawing import charts
from roadict.extras import PAGES, require
from roadict.runs.signals import WorkStoppedError, hang_up
from roadict.studio.folder import own_folder
from roadict.studio.guard import LOCAL, Guard
from roadict.studio.leaving import AskBeforeLeaving, LeaveQuietly

FIRST_PORT = 7860
_PORTS = 100
_THIS_MACHINE = "use 127.0.0.1 for this machine alone"
_STARTS = 5
"""Attempts to start a server."""


def serve(host: str, port: int | None, *, open_browser: bool, message: Callable[[str], None]) -> NoReturn:
    """Serve the page until Ctrl-C or a termination.

    Parameters
    ----------
    host : str
        Address of this machine to listen on.
    port : int or None
        None: the first free one from 7860 on.
    open_browser : bool
    message : callable
        Called with the page's address and with warnings.
    """
    require("roadict studio", "gradio", *PAGES, extra="studio")
    _free_port(host, port)
    with _stopped_by_signals(), own_folder() as folder:
        _configure_gradio(folder / "gradio", host)
        # Gradio reads its settings from the environment as it is imported.
        from roadict.studio.jobs import JobQueue
        from roadict.studio.page.layout import build

        queue = JobQueue()
        store = _store(folder, message)
        page = build(queue, folder, store)
        try:
            address = _launch(page, host, port)
            message(f"studio at {address} (Ctrl-C stops it)")
            if host not in LOCAL:
                message("anyone who can reach this address can use it and see past runs; there is no password")
            if open_browser:
                webbrowser.open(address)
            while True:
                time.sleep(3600)  # on Windows Ctrl-C ends a sleep, and not the wait for an event
        except KeyboardInterrupt:
            kept = "" if store.is_relative_to(folder) else "; finished runs are kept for a week"
            raise WorkStoppedError(f"the studio has stopped{kept}") from None
        finally:
            queue.close()
            page.close(verbose=False)


def _launch(page: Any, host: str, port: int | None) -> str:
    """Serve the page at the port, or at a free one, and return its address.

    Until Gradio listens, a few seconds after a port was found free, another studio may have taken it.
    """
    for _ in range(_STARTS):
        chosen = _free_port(host, port)
        try:
            return str(page.launch(**_settings(host, chosen))[1])
        except OSError:  # taken, or not started in time
            pass
    raise ValueError(f"the studio could not start at {host}, port {chosen}; try again, or choose another with --port")


def _settings(host: str, port: int) -> dict[str, Any]:
    """Arguments of Gradio's launch."""
    from starlette.middleware import Middleware

    from roadict.studio.page.layout import CSS_FILES, theme

    return {
        "server_name": f"[{host}]" if ":" in host else host,  # IPv6, as Gradio wants it
        "server_port": port,
        "share": False,
        "quiet": True,
        "inbrowser": False,
        "prevent_thread_lock": True,
        "show_error": True,
        "max_file_size": _upload_limit(),
        "enable_monitoring": False,
        "ssr_mode": False,
        "pwa": False,
        "mcp_server": False,
        "footer_links": [],
        "app_kwargs": {
            "lifespan": _guarded(host, port),
            "middleware": [Middleware(LeaveQuietly), Middleware(AskBeforeLeaving)],
        },
        "theme": theme(),
        "css_paths": [charts.CSS_FILE, *CSS_FILES],
    }


def _store(folder: Path, message: Callable[[str], None]) -> Path:
    """Return the folder for past runs in the user's cache; where that cannot be written, in ours."""
    from roadict.pictures.upscaling import cache_folder

    try:
        store = cache_folder() / "studio"
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".", dir=store):
            pass  # a folder that is there may belong to another user
    except OSError as failure:
        message(f"past runs are forgotten when the studio stops, as they cannot be saved: {failure.strerror}")
        return folder / "past"
    return store


def _guarded(host: str, port: int) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return what puts the guard in front of an application as it starts.

    Gradio adds its own layers before that, one of which answers requests of other sites by itself.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        app.middleware_stack = Guard(app.middleware_stack, host, port)
        yield

    return lifespan


def _upload_limit() -> int:
    from roadict.studio.inputs import MAX_BYTES

    return MAX_BYTES


def _configure_gradio(folder: Path, host: str) -> None:
    """Turn off Gradio's telemetry and history, and store its files in a folder that is deleted with the studio."""
    folder.mkdir()
    os.environ |= {
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_TEMP_DIR": str(folder),
        "GRADIO_RUN_HISTORY": "False",
        "GRADIO_ALLOWED_PATHS": "",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    # Gradio requests its own page once, which a proxy would not find.
    for variable in ("no_proxy", "NO_PROXY"):
        os.environ[variable] = ",".join(filter(None, (os.environ.get(variable), "localhost", "127.0.0.1", host)))


def _free_port(host: str, port: int | None) -> int:
    """Return the port if it is free, or the first free one.

    Gradio wants it at 127.0.0.1 too, whatever the host.
    """
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"--port {port} must be between 1 and 65535")
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except OSError:
        raise ValueError(f"--host {host} is no address; {_THIS_MACHINE}") from None
    for candidate in range(FIRST_PORT, FIRST_PORT + _PORTS) if port is None else [port]:
        try:
            _bind(family, host, candidate)
            _bind(socket.AF_INET, "127.0.0.1", candidate)
        except PermissionError:
            raise ValueError(f"--port {candidate} needs an administrator; choose one above 1023") from None
        except OSError as failure:
            if failure.errno == errno.EADDRNOTAVAIL:
                raise ValueError(f"--host {host} is no address of this machine; {_THIS_MACHINE}") from None
            if port is not None:
                raise ValueError(
                    f"cannot listen at {host}, port {port} ({failure.strerror}); choose another with --port"
                ) from None
            continue
        return candidate
    raise ValueError(f"ports {FIRST_PORT} to {FIRST_PORT + _PORTS - 1} of {host} are taken; choose one with --port")


def _bind(family: int, host: str, port: int) -> None:
    """Raise OSError if a port cannot be had."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # as the server does; on Windows it would let two listen at one port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Exit by an exception, so that files are deleted, where a signal would end the program at once."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, *hang_up())}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in the background of a script. Jobs would inherit it, and not hear "Stop and keep"; a handler they do not.
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
