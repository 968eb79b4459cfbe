"""Ids and item names keep their form."""

import numpy as np
import pandas as pd

import dynaesti as dy

read = dy.Responses.read


def test_names_keep_their_form(tmp_path):
    (tmp_path / "a.csv").write_text("id,item,resp,date\n007,1.10,1,1\n7,1.1,0,2\nNA,Ünï=1+1,1,3\n")
    found = read(tmp_path / "a.csv")
    assert found.people.tolist() == ["007", "7", "NA"]
    assert found.items.tolist() == ["1.1", "1.10", "Ünï=1+1"]
    (tmp_path / "b.csv").write_text("id,item,resp,date\n7,1,1,1\n8,2,0,2\n")
    assert read(tmp_path / "b.csv").people.tolist() == [7, 8]


def test_numbers_and_their_written_form_name_the_same(table):
    """A file whose ids are all numbers meets one where they are text."""
    numbered = table.assign(id=table["id"].str[1:].astype(int))
    fit = dy.DynAEsti(bandwidth=0.4).fit(numbered)
    more = pd.DataFrame(
        {"id": ["3", "new"], "item": ["i00", "i01"], "resp": [1.0, 0.0], "date": [1.2, 1.2]}
    )
    grown = fit.update(more)
    assert grown.responses.people.size == fit.responses.people.size + 1
    assert 3 in grown.responses.people.tolist()
    assert "3" not in grown.responses.people.tolist()


def test_text_is_numbered_alike_with_and_without_arrow(monkeypatch, rng):
    from dynaesti.data import labels

    texts = np.array([f"é{k}" for k in rng.integers(0, 40, 300)], dtype=object)
    fast = labels.encode(texts, "id")
    monkeypatch.setattr(labels, "_encode_texts", lambda values: None)
    slow = labels.encode(texts, "id")
    assert fast[0].tolist() == slow[0].tolist()
    assert fast[1].tolist() == slow[1].tolist()
