"""EM: order, labels and threads do not matter; few people leave items sensible."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


def test_order_labels_and_threads_do_not_matter(monkeypatch):
    from dynaesti.core import parallel as threads

    monkeypatch.setattr(threads, "CHUNK", 200)
    table = classroom(40, 6, 20)
    one = dy.DynAEsti(threads=1, iterations=12).fit(table)
    two = dy.DynAEsti(threads=3, iterations=12).fit(table)
    assert np.array_equal(one.bank.to_vector(), two.bank.to_vector())
    assert np.array_equal(one.ability([0.5])["mean"], two.ability([0.5])["mean"])
    shuffled = table.sample(frac=1, random_state=0)
    shuffled["id"] = shuffled["id"].map(lambda label: hash(label) % 10**9)
    shuffled["item"] = shuffled["item"].map(lambda label: "z" + label[::-1])
    three = dy.DynAEsti(threads=2, iterations=12).fit(shuffled)
    mine, theirs = (
        one.items.set_index("item"),
        three.items.assign(item=lambda f: f["item"].str[1:].str[::-1]).set_index("item"),
    )
    assert_allclose(theirs.loc[mine.index, "b"], mine["b"], atol=1e-6)


@pytest.mark.parametrize("people", [1, 2, 4])
def test_few_people_leave_the_items_sensible(people):
    table = classroom(people, 8, 25)
    fit = dy.DynAEsti(bandwidth=0.4).fit(table)
    assert fit.converged
    assert fit.items["a"].between(0.3, 3).all()
