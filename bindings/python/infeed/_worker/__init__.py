"""Python worker processes: what runs in them (main, fetchers, seeds, errors) and who starts them (start, team).

Nothing here imports torch or numpy: a worker pays for them only if what it unpickles, or the user's code, does.
"""
