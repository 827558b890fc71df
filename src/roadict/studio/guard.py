"""Only requests to the studio's own address are answered, and none that another site's page sends."""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

Scope = Mapping[str, Any]
Channel = Callable[..., Awaitable[Any]]
App = Callable[[Scope, Channel, Channel], Awaitable[None]]
LOCAL = ("127.0.0.1", "localhost", "::1")
_EVERY = ("0.0.0.0", "::")


class Guard:
    """An ASGI application in front of the studio's.

    A page of another site can reach this machine in two ways: its name may be made to mean 127.0.0.1 after it has
    loaded, which its ``Host`` tells, or it posts to the studio's address, which its ``Origin`` tells.

    Parameters
    ----------
    app : ASGI application
    host : str
        Address that the studio listens on.
    port : int
    """

    def __init__(self, app: App, host: str, port: int) -> None:
        self._app = app
        self._host = host.lower()
        self._port = port

    async def __call__(self, scope: Scope, receive: Channel, send: Channel) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan" or not (refusal := self._refusal(scope["headers"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": f"{refusal}\n".encode()})

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> str:
        """Why a request is refused; "" if it is not."""
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return f"The studio is at http://{_bracketed(self._host)}:{self._port}, and answers under no other address."
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if any(not origin.startswith("http://") or not self._is_own(origin[7:]) for origin in origins):
            return "The studio accepts nothing from pages of other sites."
        return ""

    def _is_own(self, authority: str) -> bool:
        """Whether a host with its port is ours; where we listen on all addresses, all but foreign names are."""
        try:
            parts = urlsplit(f"//{authority}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self._port or parts.netloc != authority or "@" in authority:
            return False
        if self._host in _EVERY:
            return name in (*LOCAL, socket.gethostname().lower()) or _is_number(name)
        return name in (*LOCAL, self._host)


def _is_number(name: str) -> bool:
    """Whether a host is an address in numbers, which no name server can turn into another one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
