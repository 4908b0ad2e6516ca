"""Long proofs from outside: random schedules, kills, an editor at work, and fuzzing, each with a seed.

    python -m tests.soak schedules --seed 1 --count 2000 --jobs 2   # random steps of 2 to 4 processes, checked after each
    python -m tests.soak kills --seed 1 --count 10000 --jobs 2      # SIGKILL at random instants, one to eight processes
    python -m tests.soak editor --seed 1 --minutes 5                # a person saves MEMORY.md while agents write
    python -m tests.soak fuzz --seed 1 --count 1000000 --jobs 2     # hostile arguments, files, archives and requests
    python -m tests.soak all --seed 1 --minutes 5                   # five minutes of each

`--minutes` ends a run early, `--json` prints the counts as JSON at the end, `--dir` names the folder to work in. A violation is
printed with a replay, `python -m tests.soak schedules --replay '…'`, and the exit code is 1.

Nothing here knows how Recollect works inside. It uses the documented Python API, the command line, MCP over stdio and HTTP,
and opens MEMORY.md as an editor does. Processes are forked from one that has loaded the package, which makes a real process
cheap enough for thousands of schedules; no database is open in the one that is forked.
"""
