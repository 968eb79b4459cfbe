"""Sites kept on disk."""

from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import shuffled_classroom

ITERATIONS = 40


def test_lost_sites_cost_a_cold_start_only(tmp_path):
    """Sites are a cache: without them a shard begins cold and settles to what it was."""
    shards = dy.prepare(shuffled_classroom(60), tmp_path / "shards", shards=2)
    fit = dy.DynAEsti("2PL", iterations=ITERATIONS).fit(shards, out=tmp_path / "run")
    warm = fit.shard(0)
    for path in (tmp_path / "run" / "sites").iterdir():
        path.unlink()
    cold = dy.load(tmp_path / "run").shard(0)
    assert_allclose(cold.ability([0.5])["mean"], warm.ability([0.5])["mean"], atol=1e-6)
    assert_allclose(cold.person_evidence, warm.person_evidence, atol=1e-6)
