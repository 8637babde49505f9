"""`python -m ridgepole`."""

from ridgepole.cli.main import main

main()
