"""Person summaries and sites of parts join to the whole."""

from dataclasses import fields

import numpy as np
from numpy.testing import assert_allclose

from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.estimation.subsample import PersonSummary
from support.simulated import parts, shuffled_classroom


def test_summaries_and_sites_of_parts_join_to_the_whole():
    _, _, _, sites = parts(shuffled_classroom(30))
    cut = [sites.select(np.arange(a, b)) for a, b in ((0, 7), (7, 8), (8, 30))]
    joined = PeopleSites.concatenate(cut)
    for field in fields(sites.layout):
        found, whole = (getattr(one.layout, field.name) for one in (joined, sites))
        assert_allclose(found, whole, err_msg=field.name)
    assert_allclose(joined.constant, sites.constant)
    summary = PersonSummary.concatenate([part.person_summary for part in cut])
    assert_allclose(summary.sample(60), sites.person_summary.sample(60))
    back = PersonSummary.concatenate([part.person_summary for part in cut[::-1]])
    order = np.concatenate([np.arange(8, 30), [7], np.arange(7)])
    assert set(order[back.sample(60)]) == set(sites.person_summary.sample(60))
