"""Names of the files in the folder of a run."""

FIT_NAME, STATIC_NAME = "fit.dyn", "static.dyn"  # the fit, and its twin with constant abilities
LOCK = ".lock"  # held by the one command that changes the run
CHECKPOINT = "fit.ckpt"  # while a fit is under way
ABILITIES, PARTS = (
    "abilities",
    "parts",
)  # of a fit of shards: tables of everyone's abilities; shards that have grown
