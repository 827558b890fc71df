"""The program as processes forked from a server that has imported everything already, which takes seconds."""

import multiprocessing
import os
import sys
from contextlib import contextmanager

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch.distributed", "roadict.cli.app", "roadict.estimators", "roadict.engines.cpu.fused"]
)


def run_program(arguments, folder, environment):
    """Run ``python -m roadict`` in a folder; its output is appended to the file ``output`` there."""
    os.chdir(folder)
    os.environ.update(environment)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["roadict", *arguments]
    from roadict.__main__ import main

    main()


@contextmanager
def started(folder, *arguments, **environment):
    """Start the program; its process is killed at the end of the block."""
    process = FORKS.Process(target=run_program, args=([*map(str, arguments)], folder, environment))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
