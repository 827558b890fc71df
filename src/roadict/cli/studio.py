"""The command that opens the studio."""

from typing import Annotated

import typer

from roadict.cli.help import examples


def add_commands(app: typer.Typer) -> None:
    """Add the studio command."""
    app.command(epilog=examples("roadict studio", "roadict studio --port 8000 --no-browser"))(studio)


def studio(
    host: Annotated[str, typer.Option(help="Address to listen on; any other gives other machines access.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int | None, typer.Option(help="Port. Default: the first free one from 7860 on.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page on this machine to try roadict on your own pictures and signals."""
    from roadict.studio.server import serve

    serve(host, port, open_browser=browser, message=lambda text: typer.echo(text, err=True))
