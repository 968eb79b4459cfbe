"""How the software and the paper of its method are cited."""

from __future__ import annotations

from dynaesti import __version__

PAPER = (
    "Ajay Shanker Tripathi and Benjamin W. Domingue (2019). Curve Fitting from Probabilistic "
    "Emissions and Applications to Dynamic Item Response Theory. IEEE International Conference on "
    "Data Mining (ICDM)."
)
BIBTEX = """\
@software{{dynaesti,
  author = {{{{The dynaesti developers}}}},
  title = {{dynaesti}},
  version = {{{version}}}
}}
@inproceedings{{tripathi2019curve,
  author = {{Tripathi, Ajay Shanker and Domingue, Benjamin W.}},
  title = {{Curve Fitting from Probabilistic Emissions and Applications to Dynamic Item Response
    Theory}},
  booktitle = {{IEEE International Conference on Data Mining (ICDM)}},
  year = {{2019}}
}}"""


def how_to_cite() -> dict[str, object]:
    """The software and the paper, in words and as BibTeX; as `CITATION.cff` has them."""
    return {
        "words": [
            f"The software: the dynaesti developers. dynaesti {__version__}.",
            f"The method: {PAPER}",
        ],
        "bibtex": BIBTEX.format(version=__version__),
    }
