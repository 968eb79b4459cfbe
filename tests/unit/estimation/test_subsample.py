"""Person summaries and site layouts of parts join to the whole."""

import numpy as np
from numpy.testing import assert_allclose

from dynaesti.estimation.site_layout import SiteLayout
from dynaesti.estimation.subsample import PersonSummary
from support.simulated import parts, shuffled_classroom


def test_census_and_answers_of_parts_join_to_the_whole():
    _, _, _, answers = parts(shuffled_classroom(30))
    cut = [answers.take(np.arange(a, b)) for a, b in ((0, 7), (7, 8), (8, 30))]
    joined = SiteLayout.joined(cut)
    for name in (
        "times",
        "site_start",
        "factor_start",
        "factor_row",
        "factor_weight",
        "factor_response",
        "constant",
    ):
        assert_allclose(getattr(joined, name), getattr(answers, name), err_msg=name)
    person_summary = PersonSummary.joined([part.person_summary for part in cut])
    assert_allclose(person_summary.sample(60), answers.person_summary.sample(60))
    back = PersonSummary.joined([part.person_summary for part in cut[::-1]])
    order = np.concatenate([np.arange(8, 30), [7], np.arange(7)])
    assert set(order[back.sample(60)]) == set(answers.person_summary.sample(60))
