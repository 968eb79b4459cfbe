"""Names of the files in the folder of a run."""

# the fit, and its twin with constant abilities
FIT_NAME = "fit.dyn"
STATIC_NAME = "static.dyn"
LOCK = ".lock"  # held by the one command that changes the run
CHECKPOINT = "fit.ckpt"  # while a fit is under way
# of a fit of shards: tables of everyone's abilities; shards that have grown
ABILITIES = "abilities"
PARTS = "parts"
