"""`python -m tests.soak MODE`: see the package."""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.soak import editor, fuzz, kills, schedules, warm
from tests.soak.cases import CASES_IN_A_CHUNK

Counts = dict[str, int]
Job = Callable[["Share"], None]


@dataclass
class Share:
    """The part of the work that one job does, and its way to tell about it."""

    job: int
    jobs: int
    seed: str
    count: int
    ends_at: float
    folder: Path
    options: argparse.Namespace
    pipe: int

    def numbers(self, size: int = 1) -> Iterator[int]:
        """The numbers of the pieces of work of this size that are this job's to do, until there is no more time."""
        for number in range(self.job, -(-self.count // size), self.jobs):
            if time.monotonic() > self.ends_at:
                return
            yield number

    def tell(self, counts: Counts, violation: str | None = None) -> None:
        os.write(self.pipe, json.dumps({"counts": counts, "violation": violation}).encode() + b"\n")


def run_schedules(share: Share) -> None:
    pool = schedules.Pool(share.folder)
    for number in share.numbers():
        seed = f"{share.seed}:{number}"
        schedule = schedules.make_schedule(seed, share.options.length, share.options.everyday)
        counts, wrong, story = schedules.try_schedule(schedule, share.folder, pool)
        if wrong is None:
            share.tell(counts.__dict__)
            continue
        share.tell(counts.__dict__, explain(schedule, wrong, story, share.folder, pool, share.options.shrink))
    pool.end()


def explain(
    schedule: schedules.Schedule, wrong: str, story: list[str], folder: Path, pool: schedules.Pool, seconds: float
) -> str:
    """What went wrong, as short as can be found, and how to see it again."""
    smaller = schedules.shrink(schedule, folder, pool, seconds) if seconds else schedule
    for _ in range(3):
        _, less_wrong, less = schedules.try_schedule(smaller, folder, pool)
        if less_wrong:
            wrong, story = less_wrong, less
            break
    else:
        smaller = schedule
    told = "\n".join(f"    {line}" for line in story)
    replay = f"python -m tests.soak schedules --replay '{smaller.to_json()}'"
    return f"seed {schedule.seed}, {len(schedule.steps)} steps, shrunk to {len(smaller.steps)}:\n{told}\n  {wrong}\n  {replay}"


def run_kills(share: Share) -> None:
    left = share.count // share.jobs + (share.job < share.count % share.jobs)
    number = 0
    while left > 0 and time.monotonic() < share.ends_at:
        seed = f"{share.seed}:{share.job}/{share.jobs}:{number}"
        counts, wrong = kills.one_folder(
            share.folder / str(number), seed, left, share.options.processes, not share.options.no_editor
        )
        share.tell(counts.__dict__, wrong and f"seed {seed} (instants differ from run to run): {wrong}")
        left -= counts.kills
        number += 1


def run_editor(share: Share) -> None:
    for number in share.numbers(editor.SAVES_IN_A_FOLDER):
        seed = f"{share.seed}:{number}"
        counts, wrong = editor.one_folder(share.folder / str(number), seed, not share.options.fresh)
        share.tell(counts.__dict__, wrong and f"seed {seed} (instants differ from run to run): {wrong}")


def run_fuzz(share: Share) -> None:
    for number in share.numbers(CASES_IN_A_CHUNK):
        area = share.options.area or fuzz.area_of(number)
        counts, wrong = fuzz.one_chunk(area, f"{share.seed}:{number}", share.folder / str(number))
        share.tell(counts, wrong)


MODES: dict[str, tuple[Job, int]] = {
    "schedules": (run_schedules, 2000),
    "kills": (run_kills, 10000),
    "editor": (run_editor, 4000),
    "fuzz": (run_fuzz, 1_000_000),
}
"""What each mode does, and how often unless told."""


def main() -> int:
    options = parse()
    warm.load()
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir=options.dir))
    try:
        if options.replay:
            return replay(options.replay, folder)
        modes = list(MODES) if options.mode == "all" else [options.mode]
        results = {mode: run_mode(mode, options, folder / mode) for mode in modes}
    finally:
        if not os.environ.get("SOAK_KEEP"):  # to look at what a violation left behind
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps(results if options.mode == "all" else results[options.mode]))
    return 1 if any(counts["violations"] for counts in results.values()) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Long proofs from outside, each with a seed."
    )
    parser.add_argument("mode", choices=[*MODES, "all"])
    parser.add_argument("--seed", default="1", help="what the random choices depend on")
    parser.add_argument("--count", type=int, help="how many schedules, kills, saves or cases")
    parser.add_argument("--minutes", type=float, help="end after so many minutes, for each mode")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--dir", help="the folder to work in; a temporary one otherwise")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON at the end")
    parser.add_argument("--length", type=int, default=24, help="schedules: the most steps of one")
    parser.add_argument(
        "--everyday", action="store_true", help="schedules: mostly the Python API, which is quick to start"
    )
    parser.add_argument(
        "--shrink", type=float, default=30, help="schedules: seconds to look for a shorter replay; 0: none"
    )
    parser.add_argument("--processes", type=int, default=8, help="kills: how many there are at a time, at most")
    parser.add_argument("--no-editor", action="store_true", help="kills: nobody saves MEMORY.md meanwhile")
    parser.add_argument("--fresh", action="store_true", help="editor: each save follows at once on reading the file")
    parser.add_argument("--area", choices=list(fuzz.AREAS), help="fuzz: this area alone")
    parser.add_argument("--stop", type=int, default=5, help="end after so many violations; 0: never")
    parser.add_argument("--replay", help="a schedule as JSON or a file that holds one; for fuzz AREA/SEED")
    return parser.parse_args()


def replay(text: str, folder: Path) -> int:
    """Run one schedule, or one chunk of generated cases, and tell its story."""
    if "/" in text and text.partition("/")[0] in fuzz.AREAS:
        area, _, seed = text.partition("/")
        counts, chunk_wrong = fuzz.one_chunk(area, seed, folder / "chunk")
        print(counts, chunk_wrong or "no violation", sep="\n")
        return 1 if chunk_wrong else 0
    schedule = schedules.Schedule.from_json(text if text.startswith("{") else Path(text).read_text())
    pool = schedules.Pool(folder)
    _, wrong, story = schedules.try_schedule(schedule, folder, pool)
    pool.end()
    print("\n".join(story), wrong or "no violation", sep="\n")
    return 1 if wrong else 0


def run_mode(mode: str, options: argparse.Namespace, folder: Path) -> Counts:
    """Run one mode in several processes, and print how it goes."""
    work, usual = MODES[mode]
    count = options.count or (sys.maxsize if options.minutes else usual)
    ends_at = time.monotonic() + (options.minutes * 60 if options.minutes else 1e9)
    began = time.monotonic()
    pipes = {}
    for job in range(options.jobs):
        place = folder / str(job)
        place.mkdir(parents=True)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.setpgid(0, 0)  # so that it can be ended with everything it started
            code = 1
            try:
                work(Share(job, options.jobs, options.seed, count, ends_at, place, options, writing))
                code = 0
            except KeyboardInterrupt:
                pass
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(writing)
        pipes[reading] = (pid, b"")
    try:
        counts, failed = follow(mode, pipes, began, options.stop)
    except KeyboardInterrupt:
        end_jobs(pipes)
        raise
    if failed:
        counts["violations"] = counts.get("violations", 0) + failed
    print(
        f"{mode}: {summary(counts, began)}, seed {options.seed}: {'FAILED' if counts['violations'] else 'ok'}",
        flush=True,
    )
    return counts


def follow(mode: str, pipes: dict[int, tuple[int, bytes]], began: float, stop: int) -> tuple[Counts, int]:
    """Add up what the jobs tell until all have ended. Return the counts, and how many jobs broke down."""
    counts: Counts = {"violations": 0}
    told, broken = began, 0
    while pipes:
        for reading in select.select(list(pipes), [], [], 5)[0]:
            pid, rest = pipes[reading]
            data = os.read(reading, 1 << 16)
            if not data:
                os.close(reading)
                del pipes[reading]
                broken += os.waitpid(pid, 0)[1] != 0
                continue
            *lines, rest = (rest + data).split(b"\n")
            pipes[reading] = pid, rest
            for line in lines:
                said = json.loads(line)
                for name, value in said["counts"].items():
                    counts[name] = counts.get(name, 0) + value
                if said["violation"]:
                    print(f"VIOLATION {said['violation']}", flush=True)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{mode}: {summary(counts, began)}", flush=True)
        if stop and counts["violations"] >= stop:
            end_jobs(pipes)
            return counts, 0
    return counts, broken


def end_jobs(pipes: dict[int, tuple[int, bytes]]) -> None:
    for reading, (pid, _) in pipes.items():
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)


def summary(counts: Counts, began: float) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items()) + f", {time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
