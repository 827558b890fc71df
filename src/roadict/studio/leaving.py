"""A page with a job asks before it is left, and works on if its user stays; one that goes leaves no errors behind."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from roadict.studio.guard import App, Channel, Scope

SCRIPT = b"""<script>
addEventListener('beforeunload', event => {
  if (!document.querySelector('.rd-live')) return
  event.preventDefault()
  event.stopImmediatePropagation()
})
</script>"""
"""Gradio disconnects the page at this event, whatever its user answers; only an earlier listener can prevent that."""


class AskBeforeLeaving:
    """An ASGI application that adds the script to the start of the page, before Gradio's own.

    Parameters
    ----------
    app : ASGI application
        Must not compress.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Channel, send: Channel) -> None:
        """Answer a request; the page itself with the script."""
        if scope["type"] != "http" or scope["path"] != "/":
            await self._app(scope, receive, send)
            return
        start: Mapping[str, Any] = {}
        body = b""

        async def collect(message: Mapping[str, Any]) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                whole = body.replace(b"<head>", b"<head>" + SCRIPT, 1)
                headers = [pair for pair in start["headers"] if pair[0] != b"content-length"]
                await send({**start, "headers": [*headers, (b"content-length", str(len(whole)).encode())]})
                await send({"type": "http.response.body", "body": whole})

        await self._app(scope, receive, collect)


class LeaveQuietly:
    """An ASGI application that ends the events of a page that has gone without an error.

    A page that is being left may ask for its events once more after Gradio has forgotten it. Gradio then begins an
    answer, says in it that the page is not found, and raises that too: a traceback in the terminal, for nothing. The
    same if it asked twice: when both answers are cut off, Gradio forgets the page twice, which is a KeyError.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Channel, send: Channel) -> None:
        """Answer a request."""
        try:
            await self._app(scope, receive, send)
        except (RuntimeError, KeyError) as error:
            if not _has_left(scope, error):
                raise
            await send({"type": "http.response.body", "body": b""})


def _has_left(scope: Scope, error: Exception) -> bool:
    """Whether a request for events failed because Gradio knows no such page any more."""
    if not scope.get("path", "").endswith("/queue/data"):
        return False
    if isinstance(error, KeyError):
        return [*error.args] == parse_qs(scope["query_string"].decode()).get("session_hash")
    return getattr(error.__cause__, "status_code", None) == 404  # by Starlette, as the answer has begun
