"""Names of the files in the folder of a run (a fit on disk)."""

FIT_NAME = "fit.dyn"
STATIC_NAME = "static.dyn"  # the same fit with constant abilities, for comparison
LOCK = ".lock"  # held by the one command that changes the run
CHECKPOINT = "fit.ckpt"  # while a fit is under way
ABILITIES = "abilities"  # folder of a sharded fit: tables of everyone's abilities
PARTS = "parts"  # folder of a sharded fit: shards that updates have changed
