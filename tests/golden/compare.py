"""All arrays of a dozen small fits, before a refactoring and after it.

`python tests/golden/compare.py COMMIT [case …]`.

The commit is checked out beside this tree, both run the same cases, and every array that differs is
named with its largest relative difference. Moves and renames leave every bit; a change that merges
computations may move the last digits, and says so in its commit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]


def run(source: Path, out: Path, cases: list[str], threads: str) -> dict[str, np.ndarray]:
    """The arrays of the cases, made with the package at `source`."""
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_NUM_THREADS": threads}
    subprocess.run(
        [sys.executable, HERE.parent / "cases.py", out, *cases], env=environment, check=True
    )
    with np.load(out) as found:
        return dict(found)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest relative difference (0 where every bit is the same, inf where shapes, types or gaps
    differ).
    """
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return np.inf
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    size = np.nanmax(np.abs(a)) if a.size else 1.0
    return float(np.nanmax(np.abs(a - b) / np.maximum(np.abs(a), 1e-3 * max(size, 1e-300))))


def main() -> int:
    """Compare, tell, and return 1 if anything differs by more than the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("cases", nargs="*")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        help="largest relative difference that passes (default: none)",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "--detach", "-f", before, args.commit],
            check=True,
            capture_output=True,
        )
        try:
            old = run(before / "src", Path(folder) / "old.npz", args.cases, "2")
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", before], check=True)
        new = run(ROOT / "src", Path(folder) / "new.npz", args.cases, "2")
    off = {name: difference(old[name], new[name]) for name in old if name in new}
    missing = sorted(set(old) ^ set(new))
    for name, size in off.items():
        if size > 0.0:
            print(f"{size:9.2e}  {name}")
    for name in missing:
        print(f"only on one side: {name}")
    changed = [size for size in off.values() if size > 0.0]
    print(
        f"{len(off)} arrays, {len(changed)} differ, by {max(changed, default=0.0):.2e} at most; "
        f"{len(missing)} on one side only"
    )
    return int(bool(missing) or any(size > args.tolerance for size in changed))


if __name__ == "__main__":
    sys.exit(main())
