"""`python -m recollect`: the same as the program `recollect`."""

from recollect.surfaces.cli import main

main()
