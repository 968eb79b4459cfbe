"""Run a benchmark: `python -m benchmarks {accuracy,recovery,cohort,effects,screening,logs,sharded,tables,gold,before_after,live,peers} …`.

Each has a `main(arguments)` and a help of its own; nothing heavy is imported before it is chosen.
"""

import argparse
import importlib
import sys

BENCHMARKS = {
    "accuracy": ("benchmarks.accuracy", "speed of curves, and steep items that converge"),
    "recovery": ("benchmarks.recovery", "recovery and coverage of items and abilities, updates"),
    "cohort": ("benchmarks.cohort", "the population's mean over time, groups, and their cost"),
    "effects": ("benchmarks.effects", "effects beside numpyro; practice on next answers"),
    "screening": ("benchmarks.screening", "DIF and drift: false alarms, power, cost"),
    "logs": ("benchmarks.logs", "ours alone on real logs: log loss, calibration, convergence"),
    "sharded": ("benchmarks.sharded", "time and memory of fits of shards against size"),
    "tables": ("benchmarks.tables", "reading a million answers from CSV, writing tables"),
    "gold": ("benchmarks.gold", "grafted curves against long importance sampling"),
    "before_after": ("benchmarks.before_after", "CPU time of this tree against another commit"),
    "live": ("benchmarks.live.run", "states, the service under load, kills, refits, its page"),
    "peers": ("benchmarks.peers.run", "ours beside other packages"),
}


def main(arguments: list[str]) -> None:
    """Choose a benchmark by its name and hand it the rest of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measurements of the package.",
        epilog="\n".join(f"{name:<10} {what}" for name, (_, what) in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("benchmark", choices=BENCHMARKS)
    chosen = parser.parse_args(arguments[:1]).benchmark
    importlib.import_module(BENCHMARKS[chosen][0]).main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
