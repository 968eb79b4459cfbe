"""How fits of shards grow.

Time, memory and speed against size; a Dask cluster against threads; runs that are killed.

    python -m benchmarks sharded --sizes 1e5 1e6 1e7 --dask 1e7 --kills 20 --out docs/evidence/scale.json

2PL, 10,000 items, irregular times, people with 5 to 2,000 answers. Every fit runs in a process of
its own, whose memory is measured.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LEAST, MOST, MEAN = 5, 2000, 333  # answers of a person
SPAN, BANDWIDTH = 100.0, 25.0


# --- one fit, in a process of its own


def child(args: argparse.Namespace) -> None:
    import numpy as np

    import dynaesti as dy
    from dynaesti.estimation import e_step as expectation
    from dynaesti.estimation import em
    from dynaesti.sharded import people as sharded
    from dynaesti.sharded.executors import cluster

    seconds = {"look": 0.0, "m_step": 0.0, "information": 0.0}
    passes, matched = [], [0]

    def timed(owner, name, key):
        inner = getattr(owner, name)

        def outer(*given, **named):
            begun = time.perf_counter()
            try:
                return inner(*given, **named)
            finally:
                seconds[key] += time.perf_counter() - begun
                if key == "look":
                    passes.append(time.perf_counter() - begun)

        setattr(owner, name, outer)

    timed(sharded.PeopleInShards, "e_step", "look")
    timed(sharded.PeopleInShards, "information", "information")
    timed(em, "maximise_items", "m_step")
    inner = expectation.match_sites_cached

    def counted(sites, *rest):
        matched[0] += sites.size
        return inner(sites, *rest)

    expectation.match_sites_cached = counted
    begun, cpu = time.perf_counter(), time.process_time()
    with cluster(args.dask) as executor:
        begun_fit = time.perf_counter()
        fit = dy.DynAEsti(
            "2PL", threads=args.threads, executor=executor, standard_errors=not args.plain
        ).fit(args.shards, out=args.run)
        done = time.perf_counter()
        if not args.plain:
            fit.write_abilities(executor=executor)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        json.dumps(
            {
                "answers": fit.shards.rows,
                "people": fit.shards.people,
                "items": int(fit.item_labels.size),
                "shards": len(fit.shards),
                "priors": len(fit.kernels),
                "steps": len(fit.trace),
                "converged": bool(fit.converged),
                "passes": len(passes),
                "fit_seconds": done - begun_fit,
                "abilities_seconds": time.perf_counter() - done,
                "seconds": time.perf_counter() - begun,
                "cpu_seconds": time.process_time() - cpu,
                "peak_gb": memory,
                "look_seconds": seconds["look"],
                "m_step_seconds": seconds["m_step"],
                "information_seconds": seconds["information"],
                "pass_seconds": passes,
                "site_sweeps": matched[0],
                "log_evidence": fit.log_evidence,
                "stages": [step.stage for step in fit.trace],
                "print": float(
                    np.abs(np.concatenate([b.u.ravel() for b in fit.bank.blocks])).sum()
                ),
            }
        )
    )


def run_fit(shards, run, *options, keep=False) -> dict:
    shutil.rmtree(run, ignore_errors=True)
    found = subprocess.run(
        [sys.executable, __file__, "--child", "--shards", str(shards), "--run", str(run), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    if found.returncode:
        sys.exit(found.stderr)
    if not keep:
        shutil.rmtree(run, ignore_errors=True)
    return json.loads(found.stdout.splitlines()[-1])


# --- the parts


def drawn(folder: Path, answers: float) -> Path:
    from dynaesti.sharded.shards import is_shards
    from dynaesti.sharded.simulate import simulate_shards

    where = folder / f"shards-{answers:.0e}"
    if not is_shards(where):
        print(f"drawing {answers:.0e} answers", file=sys.stderr, flush=True)
        simulate_shards(
            where,
            max(50, round(answers / MEAN)),
            10_000,
            (LEAST, MOST),
            span=SPAN,
            bandwidth=BANDWIDTH,
            truth=False,
            seed=1,
        )
    return where


def preparing(folder: Path, shards: Path) -> dict:
    """The shards' files taken as one's own data, and sorted and split again.

    Memory of a process of its own.
    """
    code = (
        "import sys, time, json, resource, dynaesti as dy; b = time.perf_counter(); c = "
        "time.process_time();"
        "s = dy.prepare(sys.argv[1] + '/shard-*.parquet', sys.argv[2], force=True);"
        "print(json.dumps({'answers': s.rows, 'seconds': time.perf_counter() - b, "
        "'cpu_seconds': time.process_time() - c,"
        "'peak_gb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))"
    )
    target = folder / "prepared"
    found = subprocess.run(
        [sys.executable, "-c", code, str(shards), str(target)], capture_output=True, text=True
    )
    shutil.rmtree(target, ignore_errors=True)
    return json.loads(found.stdout) if found.returncode == 0 else {"error": found.stderr[-500:]}


def sweep_speed(shards: Path) -> dict:
    """Answers per second, core and sweep on one shard, one thread.

    The default prior, and an RBF of about 12 features.
    """
    import numpy as np

    import dynaesti as dy
    from dynaesti.estimation import e_step as expectation
    from dynaesti.estimation.coding import build_coding, resolve_item_models
    from dynaesti.estimation.e_step import EStep
    from dynaesti.estimation.grid import ability_grid, tabulate_items
    from dynaesti.estimation.response_counts import count_responses
    from dynaesti.estimation.site_layout import build_people_sites
    from dynaesti.estimation.start_values import build_bank
    from dynaesti.inference import NaturalGaussian
    from dynaesti.sharded.shards import Shards

    matched = [0]
    inner = expectation.match_sites_cached

    def counted(sites, *rest):
        matched[0] += sites.size
        return inner(sites, *rest)

    expectation.match_sites_cached = counted
    out = {}
    for items in (200, 10_000):
        responses = Shards.open(str(shards)).responses(0)
        if (
            items < responses.items.size
        ):  # the same answers, as if to fewer items: their rows then fit into the caches
            responses = type(responses)(
                **{
                    **vars(responses),
                    "items": responses.items[:items],
                    "item": responses.item % items,
                }
            )
        models = resolve_item_models("2PL", responses.items, None, False)
        response_counts = count_responses(responses, models)
        coding = build_coding(responses.items, models, response_counts, 1)
        bank = build_bank(responses.items, coding, response_counts, "weak", {}, {})
        executor = EStep(build_people_sites(responses, coding, bank), 1, max_buffers=1)
        table = tabulate_items(bank, ability_grid(bank))
        kernels = {
            "level+matern32": dy.Level(amplitude=0.7) + dy.Matern32(BANDWIDTH, amplitude=0.7),
            "rbf, about 12 features": dy.RBF(SPAN * 1.6 / 7),
        }
        for name, kernel in kernels.items():
            start = None
            for turn in ("cold", "warm"):
                matched[0], begun = 0, time.process_time()
                found = executor.graft(kernel, table, start, 1e-4)
                spent = time.process_time() - begun
                out[f"{name}, {items} items, {turn}"] = {
                    "sweeps": matched[0] / found.log_z.size,
                    "answers_per_second": matched[0] / spent,
                }
                noise = np.random.default_rng(0).standard_normal(found.log_z.size)
                precision = found.sites.precision * (1 + 0.01 * noise)
                start = NaturalGaussian(precision, found.sites.shift)
    expectation.match_sites_cached = inner
    return out


def killed(folder: Path, kills: int) -> dict:
    """A fit that is killed at random moments until it has been often enough, then left to end."""
    import numpy as np

    import dynaesti as dy
    from dynaesti.core.run_folder import CHECKPOINT, FIT_NAME
    from dynaesti.sharded.simulate import simulate_shards

    shards, rng = folder / "shards-kills", np.random.default_rng(0)
    simulate_shards(shards, 1500, 300, (LEAST, 300), shards=6, truth=False, seed=5)
    calm = run_fit(shards, folder / "calm", "--plain", keep=True)
    truth, run, done = dy.load(folder / "calm"), folder / "killed", 0
    shutil.rmtree(run, ignore_errors=True)
    apart, evidence = [], []
    while done < kills or not apart:
        process = subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--child",
                "--plain",
                "--shards",
                str(shards),
                "--run",
                str(run),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if done < kills:
            try:
                process.wait(rng.uniform(0.5, calm["seconds"]))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                done += 1
        process.wait()
        if (run / FIT_NAME).exists() and not (
            run / CHECKPOINT
        ).exists():  # at its end, killed on the doorstep or not
            found = dy.load(run)
            apart.append(
                float(
                    max(
                        np.abs(x.u - y.u).max()
                        for x, y in zip(truth.bank.blocks, found.bank.blocks, strict=True)
                    )
                )
            )
            evidence.append(abs(truth.log_evidence - found.log_evidence))
            shutil.rmtree(run)
    return {
        "kills": done,
        "ended": len(apart),
        "steps": calm["steps"],
        "undisturbed_seconds": calm["seconds"],
        "parameters_differ_by": max(apart),
        "evidence_differs_by": max(evidence),
    }


# --- the cost model, and the page


def cost_model(told: dict) -> dict:
    """Fitted on what was measured up to 1e7.

    A warm pass by answers and priors, the M-step by items; held against every size.
    """
    import numpy as np
    from scipy.optimize import nnls

    fits = {key: fit for key, fit in told.items() if key.startswith("fit ")}
    small = [fit for fit in fits.values() if fit["answers"] < 3e7]
    cores = told["machine"]["cores"]
    work = np.array([fit["answers"] * fit["priors"] for fit in small])
    warm = np.array([np.median(fit["pass_seconds"][-4:-1]) for fit in small])
    items = np.array([fit["items"] for fit in small])
    (own, each), _ = nnls(
        np.stack([items / warm, work / cores / warm], axis=1), np.ones(warm.size)
    )  # relative errors count
    step = float(
        np.mean([fit["m_step_seconds"] / max(fit["steps"], 1) / fit["items"] for fit in small])
    )
    out = {
        "core_seconds_per_answer_and_prior": float(each),
        "pass_seconds_per_item": float(own),
        "m_step_seconds_per_item": step,
        "checked": {},
    }
    for key, fit in fits.items():
        guess = float(own * fit["items"] + each * fit["answers"] * fit["priors"] / cores)
        out["checked"][key] = {
            "warm_pass_predicted": guess,
            "warm_pass_measured": float(np.median(fit["pass_seconds"][-4:-1])),
        }
    return out


def table(told: dict) -> str:
    """The measured sizes as a table."""
    lines = [
        "| answers | people | passes | warm pass | whole fit | CPU | M-step | peak memory | "
        "abilities |",
        "|---" * 9 + "|",
    ]
    for key, fit in sorted(
        told.items(), key=lambda pair: pair[1].get("answers", 0) if isinstance(pair[1], dict) else 0
    ):
        if key.startswith("fit "):
            warm = (
                sorted(fit["pass_seconds"][-4:-1])[1]
                if len(fit["pass_seconds"]) > 4
                else fit["pass_seconds"][-1]
            )
            lines.append(
                f"| {fit['answers']:,} | {fit['people']:,} | {fit['passes']} | {warm:.1f} s | "
                f"{fit['fit_seconds'] / 60:.1f} min | "
                f"{fit['cpu_seconds']:,.0f} s | "
                f"{fit['m_step_seconds'] / max(fit['steps'], 1):.2f} s | {fit['peak_gb']:.2f} GB | "
                f"{fit['abilities_seconds']:.0f} s |"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks sharded",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sizes",
        type=float,
        nargs="*",
        default=[1e5, 1e6, 1e7],
        help="answers (default: 1e5 1e6 1e7)",
    )
    parser.add_argument(
        "--dask",
        help="answers at which 2 Dask workers are held against 2 threads; in a child: where",
    )
    parser.add_argument("--kills", type=int, default=0, help="how often a fit is killed")
    parser.add_argument(
        "--folder", type=Path, help="where shards are kept (default: a temporary folder)"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/scale.json"))
    parser.add_argument("--threads", type=int, default=2)
    for name in ("--shards", "--run"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    for name in ("--child", "--plain"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.child:
        child(args)
        return
    folder = args.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    told = json.loads(args.out.read_text()) if args.out.exists() else {}
    told["machine"] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }

    def keep(key, value):
        told[key] = value
        args.out.write_text(json.dumps(told, indent=1) + "\n")
        print(
            key,
            json.dumps({k: v for k, v in value.items() if k not in ("pass_seconds", "stages")}),
            flush=True,
        )

    for size in args.sizes:
        shards = drawn(folder, size)
        keep(f"prepare {size:.0e}", preparing(folder, shards))
        keep(f"fit {size:.0e}", run_fit(shards, folder / "run", "--threads", str(args.threads)))
    if args.sizes:
        keep(
            "sweeps", sweep_speed(drawn(folder, min(args.sizes, key=lambda size: abs(size - 1e6))))
        )
    if args.dask:
        shards = drawn(folder, float(args.dask))
        keep(
            f"threads {float(args.dask):.0e}",
            run_fit(shards, folder / "run", "--plain", "--threads", "2"),
        )
        keep(
            f"dask {float(args.dask):.0e}",
            run_fit(shards, folder / "run", "--plain", "--dask", "local:2"),
        )
    if args.kills:
        keep("kills", killed(folder, args.kills))
    if any(key.startswith("fit ") for key in told):
        keep("model", cost_model(told))
        print(table(told))
    if args.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":  # a child
    main(sys.argv[1:])
