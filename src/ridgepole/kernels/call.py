"""`python -m ridgepole.kernels.call --device D KERNEL SIZE,SIZE …`: checked kernels, for a profiler to watch.

Each call is two launches: the one that is checked, and one more.
"""

from __future__ import annotations

import argparse
import sys

from ridgepole.errors import RidgepoleError
from ridgepole.kernels.device import open_device
from ridgepole.kernels.prepare import prepare


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m ridgepole.kernels.call")
    parser.add_argument("--device")
    parser.add_argument("kernel")
    parser.add_argument("calls", nargs="+", help="the sizes of one call each, with commas between")
    options = parser.parse_args(arguments)
    try:
        device = open_device(options.device)
        for call in options.calls:
            prepare(device, options.kernel, *map(int, call.split(","))).run()
            device.synchronize()
    except RidgepoleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
