"""What the numbers and words of the page mean, each in a sentence or two."""

from __future__ import annotations

from dynaesti.errors import option

LEVEL = 0.7  # of the page's bands
SURE = 0.95  # from this probability on somebody is said to have risen, or to have fallen


SCALES = {
    "abilities": "0 is the average over all answers, and 1 is one standard deviation of people.",
    "items": "Its unit is such that the items' slopes are 1 on average.",
    "anchors": "Its zero and unit are those of the items that were given.",
}


def terms(scale: str) -> dict[str, tuple[str, str]]:
    """Names and explanations by key, in the order in which the page lists them.

    `scale` names the zero and unit of ability, see `SCALES`.
    """
    return {
        **_terms_of_the_whole(scale),
        **_terms_of_people(),
        **_terms_of_trust(),
        **_terms_of_items(),
    }


def _terms_of_the_whole(scale: str) -> dict[str, tuple[str, str]]:
    """What is said of abilities and their mean."""
    return {
        "ability": (
            "Ability",
            "How well somebody does on these items, whatever items they happened to meet; a curve, "
            f"which may move with time. {SCALES[scale]}",
        ),
        "band": (
            f"{LEVEL:.0%} band".replace("%", " %"),
            f"Where a curve probably lies: at any one time within the band with a probability of "
            f"{LEVEL:.0%}. Few answers make it wide.".replace("%", " %"),
        ),
        "mean": (
            "Mean of everyone, or of a group",
            "The average ability of the people at that time, learned together with everyone's own "
            "curve.",
        ),
        "error": (
            "±",
            "One standard error: what is estimated is within ± of the truth about two times out of "
            "three, and within twice that about 19 times out of 20.",
        ),
        "interval": (
            "95 % interval",
            "The range that holds the true difference with a probability of 95 %. Where it does "
            "not include 0, the difference is clear.",
        ),
        "average_item": (
            "Average item",
            "The items' chances of success at that ability, averaged over all items (points as a "
            "share of the highest where items have more than two responses).",
        ),
    }


def _terms_of_people() -> dict[str, tuple[str, str]]:
    """What is said of single people."""
    return {
        "rose": (
            "Rose, fell, not sure",
            "From a person's first answer to the last. Somebody rose where the probability of a "
            f"rise is at least {SURE:.0%}, fell where it is at most {1 - SURE:.0%}; in between the "
            "answers cannot tell.".replace("%", " %"),
        ),
        "change": (
            "Change",
            "Ability at the last answer less ability at the first. The bar is its "
            f"{LEVEL:.0%} band, the line in the middle no change.".replace("%", " %"),
        ),
        "change_error": (
            "± of a change",
            "One standard deviation of what is known of the change.",
        ),
        "probability": (
            "Probability of a rise",
            "How probable it is that the person's ability was higher at the last answer than at "
            "the first. 50 % is no evidence either way.",
        ),
        "with_cohort": (
            "With the others",
            "The part of a change that the person's cohort or group made in the same time.",
        ),
        "beyond": ("Beyond them", "The rest of the change: one's own."),
        "beside": (
            "Ahead, behind",
            "Somebody fell behind the others where the change was smaller than theirs with a "
            f"probability of at least {SURE:.0%}, and pulled ahead where it was larger. Who rose, "
            "but less than the others, may be behind.".replace("%", " %"),
        ),
        "n_answers": ("Answers of a person", "How many responses somebody gave."),
    }


def _terms_of_trust() -> dict[str, tuple[str, str]]:
    """What is said of how well people are known."""
    return {
        "reliability": (
            "Reliability",
            "The share of the differences between people that the answers know, from 0 (nothing) "
            "to 1 (everything), at the times of the answers. 0.8 and more tells people apart well.",
        ),
        "over_time": (
            "Curves and constant abilities compared",
            "Each answer is predicted without itself, by curves and by abilities that stay the "
            "same. The better prediction is the one nearer to the truth (log loss, in For "
            "experts).",
        ),
        "converged": (
            "Converged",
            "Further iterations would not move the estimates by what matters. Where a fit did not "
            f"converge, {option('iterations')} lets it go on.",
        ),
    }


def _terms_of_items() -> dict[str, tuple[str, str]]:
    """What is said of items."""
    return {
        "answers": ("Answers", "How many responses there are to an item."),
        "share": (
            "Share of points",
            "Points that were reached at an item, as a share of what it gives: of right answers "
            "where these are 0 and 1.",
        ),
        "item_rest": (
            "Item–rest",
            "Correlation of the responses with people's ability as the other answers have it. "
            "Low: the item says little about ability. Negative: suspect the key.",
        ),
        "flag": (
            "Flag",
            "“wrong key?”: better people do worse. “useless”: unrelated to ability. “too easy”, "
            "“too hard”: nearly everyone agrees. “misfits”: the responses follow ability in "
            "another way than the model has it.",
        ),
        "slope": (
            "Slope (a)",
            "Discrimination: how steeply the responses follow ability. Large ones tell people "
            "apart near the item's difficulty.",
        ),
        "difficulty": (
            "Difficulty (b)",
            "The ability at which the item is half solved (b1, b2, …: at which the next response "
            "takes over), on the scale of people's abilities.",
        ),
        "item_error": ("± of an item's parameter", "One standard error."),
        "infit": (
            "Infit, outfit",
            "Mean squares of residuals, 1 where the model holds. Well above 1: responses are more "
            "erratic than the model says; well below: more regular. Outfit heeds surprises of "
            "people far from the item.",
        ),
        "information": (
            "Information",
            "1 / information is the variance with which one answer to the item would tell an "
            "ability.",
        ),
    }


COLUMN_TERMS = {
    "change": ("change", "change"),
    "±": ("±", "change_error"),
    "verdict": ("in short", "rose"),
    "probability": ("chance that it rose", "probability"),
    "with the cohort": ("with the others", "with_cohort"),
    "beyond it": ("beyond them", "beyond"),
    "ability": ("at the end", "ability"),
    "beside": ("beside them", "beside"),
    "n": ("answers", "answers"),
    "share": ("share of points", "share"),
    "item_rest": ("item–rest", "item_rest"),
    "flag": ("flag", "flag"),
    "infit": ("infit", "infit"),
    "outfit": ("outfit", "infit"),
}


def headings(columns: list[str]) -> dict[str, tuple[str, str]]:
    """What the page writes above columns, and the term that explains it, where there is one."""
    found = {name: COLUMN_TERMS[name] for name in columns if name in COLUMN_TERMS}
    for name in columns:
        plain = name.removeprefix("se_")
        if plain != name:
            found[name] = (f"± {plain}", "item_error")
        elif plain == "a":
            found[name] = ("slope a", "slope")
        elif plain == "b" or (plain.startswith("b") and plain[1:].isdigit()):
            found[name] = (f"difficulty {plain}", "difficulty")
    return found
