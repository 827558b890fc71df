"""The command that opens the studio."""

from typing import Annotated

import typer

from roadict.cli.help import add_command


def add_commands(app: typer.Typer) -> None:
    """Add the studio command."""
    add_command(app, studio, "roadict studio", "roadict studio --port 8000 --no-browser")


def studio(
    host: Annotated[str, typer.Option(help="Address to listen on; any other gives other machines access.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int | None, typer.Option(help="Port. Default: the first free one from 7860 on.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page to try roadict on your own pictures and signals.

    It is served by this machine, and all work is done on it.
    """
    from roadict.studio.server import serve

    serve(host, port, open_browser=browser, message=lambda text: typer.echo(text, err=True))
