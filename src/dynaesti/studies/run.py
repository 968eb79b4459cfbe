"""The paper's studies by name."""

from __future__ import annotations

from dynaesti.studies.base import Options, Stopwatch, Study


def run_study(name: str, options: Options) -> Study:
    """Run a study: polling, prior, synthetic, static, golf or palmer."""
    from dynaesti.studies.golf import run as golf
    from dynaesti.studies.held_out_careers import run as palmer
    from dynaesti.studies.polling import run as polling
    from dynaesti.studies.prior import run as prior
    from dynaesti.studies.synthetic import run as synthetic
    from dynaesti.studies.synthetic import run_static

    runs = {
        "polling": polling,
        "prior": prior,
        "synthetic": synthetic,
        "static": run_static,
        "golf": golf,
        "palmer": palmer,
    }
    clock = Stopwatch()
    study = runs[name](options)
    study.seconds = clock.passed()
    return study
