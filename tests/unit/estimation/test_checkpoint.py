"""Checkpoints: an interrupted fit goes on, another one is refused."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize("stop", [2, 4, 6])
def test_an_interrupted_fit_goes_on_to_the_same_answer(tmp_path, stop):
    table = classroom(40, 6, 20)
    path = tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti(checkpoint=path, every=0.0, progress=interrupt).fit(table)
    assert path.exists()
    resumed = dy.DynAEsti(checkpoint=path, every=0.0).fit(table)
    straight = dy.DynAEsti().fit(table)
    assert np.array_equal(resumed.bank.to_vector(), straight.bank.to_vector())
    assert len(resumed.trace) == len(straight.trace)
    assert not path.exists()


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti(checkpoint=path, every=0.0, progress=interrupt).fit(classroom(40, 6, 20))
    with pytest.raises(dy.StorageError, match="other data or options"):
        dy.DynAEsti(checkpoint=path).fit(classroom(40, 6, 20, seed=1))


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    table, path = classroom(40, 4, 20, model="GRM"), tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti("GRM", bandwidth=0.4, checkpoint=path, every=0.0, progress=interrupt).fit(table)
    with pytest.raises(dy.StorageError, match="other data or options"):
        dy.DynAEsti("GPCM", bandwidth=0.4, checkpoint=path).fit(table)
