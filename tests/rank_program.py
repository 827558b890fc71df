"""The program as processes that are forked from one which has imported all that they need, which takes seconds."""

import multiprocessing
import os
import sys
from contextlib import contextmanager

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch.distributed", "roadict.cli.app", "roadict.estimators", "roadict.engines.cpu.fused"]
)


def be_the_program(arguments, folder, environment):
    """Be ``python -m roadict`` in a folder; what it says goes to the file ``said`` there, which others may share."""
    os.chdir(folder)
    os.environ.update(environment)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.argv = ["roadict", *arguments]
    from roadict.__main__ import main

    main()


@contextmanager
def started(folder, *arguments, **environment):
    """Start the program; its process ends with the block, if not before."""
    process = FORKS.Process(target=be_the_program, args=([str(word) for word in arguments], folder, environment))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
