"""test_due.py - the package against the library that DUE_LIBRARY_PATH says."""

import asyncio
import gc
import os
import select
import subprocess
import sys
import tempfile
import threading
import unittest
from datetime import datetime, timedelta, timezone
from unittest import mock

try:
    import cffi  # noqa: F401
except ImportError:
    print("python3-cffi is not there")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir))

import due  # noqa: E402
from due import _native  # noqa: E402


def manual(**more):
    clock = due.ManualClock(1)
    return clock, due.Queue(manual=clock, **more)


class Cron(unittest.TestCase):
    def test_a_time_comes_in_its_zone(self):
        eve = datetime(2026, 3, 28, 12, tzinfo=timezone.utc)
        self.assertEqual(due.cron_next("30 2 * * *", "CET-1CEST,M3.5.0,M10.5.0/3", eve),
                         datetime(2026, 3, 29, 1, tzinfo=timezone.utc))
        self.assertGreater(due.cron_next("* * * * *"), datetime.now(timezone.utc))

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(due.errors.InvalidError, "none of the months"):
            due.cron_next("0 0 30 2 *")
        with self.assertRaisesRegex(due.errors.InvalidError, "no such time zone"):
            due.cron_next("@daily", "Mars/Olympus")
        with self.assertRaises(ValueError):
            due.cron_next("@daily\0")


class Made(unittest.TestCase):
    def test_the_cdef_is_what_the_headers_say(self):
        done = subprocess.run([sys.executable, os.path.join(HERE, os.pardir, "make_cdef"),
                               "--check"], check=False)
        self.assertEqual(done.returncode, 0)

    def test_each_code_has_an_exception(self):
        codes = [name for name in dir(_native.lib) if name.startswith("DUE_E")
                 and isinstance(getattr(_native.lib, name), int)
                 and _native.text_of(_native.lib.due_error_name(getattr(_native.lib, name)))
                 == name]
        self.assertEqual(len(codes), 23)
        for name in codes:
            error = _native.failure(getattr(_native.lib, name))
            self.assertEqual(type(error).name, name)
            self.assertIs(getattr(due, type(error).__name__), type(error))
            self.assertTrue(str(error).lower().startswith(
                _native.text_of(_native.lib.due_error_text(error.code)).lower()))

    def test_a_destructor_looks_nothing_up(self):
        for name in "due_job_done", "due_close", "due_free", "due_workers_stop", "due_clock_free":
            self.assertIn(name, vars(_native.lib))

    def test_the_version_is_that_of_the_headers(self):
        self.assertEqual(due.version(), "0.1.0")


class Times(unittest.TestCase):
    def test_seconds_are_nanoseconds(self):
        self.assertEqual(_native.span_ns(2), 2 * 10 ** 9)
        self.assertEqual(_native.span_ns(0.1), 10 ** 8)
        self.assertEqual(_native.span_ns(1.5e-9), 2)
        self.assertEqual(_native.span_ns(timedelta(days=1, microseconds=1)), 86400000001000)
        self.assertEqual(_native.span_ns(1e300), _native.FOREVER_NS)
        self.assertEqual(_native.span_ns(10 ** 30), _native.FOREVER_NS)
        self.assertRaises(ValueError, _native.span_ns, float("nan"))
        self.assertEqual(_native.moment_ns(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)),
                         10 ** 9)
        self.assertRaises(ValueError, _native.moment_ns, datetime(1970, 1, 1))

    def test_a_datetime_is_for_the_wall_clock(self):
        now = datetime.now(timezone.utc)
        with due.Queue() as queue:
            self.assertRaises(due.InvalidError, queue.enqueue, "tea", at=now)
        with due.Queue(clock="realtime") as queue:
            queue.enqueue("tea", at=now)
            self.assertEqual(queue.dequeue(5).text, "tea")


class Jobs(unittest.TestCase):
    def test_a_job_comes_at_its_time(self):
        clock, queue = manual()
        job_id = queue.enqueue("tea", delay=5, topic="hot", priority=3, headers="h")
        self.assertIsNone(queue.dequeue(0))
        clock.advance(4.999999999)
        self.assertIsNone(queue.dequeue(0))
        clock.advance(0.000000001)
        job = queue.dequeue(0)
        self.assertEqual((job.id, job.data, job.text, job.headers, job.topic, job.priority),
                         (job_id, b"tea", "tea", b"h", "hot", 3))
        self.assertEqual((job.deadline_ns, job.lateness_ns, queue.now_ns), (6 * 10 ** 9, 0,
                                                                           6 * 10 ** 9))
        self.assertFalse(job.reserved)
        self.assertEqual(queue.stats()["lent"], 0)

    def test_a_census_counts_and_processes_are_listed(self):
        _, queue = manual()
        queue.enqueue("tea", topic="hot")
        queue.enqueue("egg", delay=5)
        census = queue.census()
        self.assertEqual((census["delayed"], census["ready"], census["dead"]), (1, 1, 0))
        self.assertEqual(queue.census("hot", timeout=1)["delayed"], 0)
        one, = queue.processes()
        self.assertEqual((one["pid"], one["self"], one["held"]), (os.getpid(), 1, 0))
        self.assertTrue(one["host"])

    def test_bytes_are_any_bytes(self):
        _, queue = manual()
        for data in b"", b"a\0b", bytearray(b"\xff" * 5000), memoryview(b"view"), "\u00fc":
            queue.enqueue(data)
            self.assertEqual(queue.dequeue(0).data, _native.bytes_of(data))

    def test_a_refusal_names_the_field(self):
        _, queue = manual()
        with self.assertRaisesRegex(due.InvalidError, "priority"):
            queue.enqueue("tea", priority=256)
        self.assertRaises(due.InvalidError, queue.find, "no id")
        self.assertRaises(ValueError, queue.enqueue, "tea", delay=-1)

    def test_answers(self):
        clock, queue = manual(lease=10)
        queue.enqueue("tea", retry=due.Retry.fixed(2, attempts=4))
        queue.reserve(0).nack()
        self.assertIsNone(queue.reserve(0))
        clock.advance(2)
        job = queue.reserve(0)
        self.assertEqual((job.attempts, job.failures, job.reserved), (2, 1, True))
        job.snooze(1)
        clock.advance(1)
        queue.reserve(0).nack(3)
        clock.advance(3)
        job = queue.reserve(0)
        job.extend(30)
        clock.advance(20)
        self.assertFalse(job.stopping)
        clock.advance(20)
        self.assertTrue(job.stopping)
        self.assertRaises(due.StaleError, job.ack)
        job = queue.reserve(0)
        job.bury("cold") if job else self.assertEqual(len(list(queue.list_dead())), 1)
        self.assertEqual(len(list(queue.list_dead())), 1)
        self.assertEqual(queue.kick_all(), 1)
        queue.reserve(0).bury("cold")
        dead = list(queue.list_dead())[0]
        self.assertEqual((dead.cause, dead.reason), ("buried", "cold"))
        queue.kick(dead.id)
        queue.reserve(0).ack()
        self.assertEqual(queue.stats()["acked"], 1)

    def test_a_job_answers_as_a_context(self):
        _, queue = manual(retry=due.Retry.ladder(2, 3))
        queue.enqueue("tea")
        with self.assertRaises(KeyError):
            with queue.reserve(0):
                raise KeyError("milk")
        self.assertEqual(queue.stats()["nacked"], 1)
        queue.enqueue("egg")
        with queue.reserve(0) as job:
            self.assertEqual(job.text, "egg")
        self.assertEqual(queue.stats()["acked"], 1)
        queue.enqueue("jam")
        with queue.reserve(0) as job:
            job.snooze(1)
        self.assertEqual((queue.stats()["acked"], queue.stats()["lent"]), (1, 0))

    def test_a_forgotten_job_is_left_to_its_lease(self):
        clock, queue = manual(lease=10)
        queue.enqueue("tea")
        queue.reserve(0)
        gc.collect()
        self.assertEqual((queue.stats()["lent"], queue.stats()["leased"]), (0, 1))
        clock.advance(10)
        self.assertEqual(queue.reserve(0).failures, 1)

    def test_keys(self):
        _, queue = manual()
        first = queue.enqueue("a", delay=1, key="k")
        with self.assertRaises(due.ExistsError) as caught:
            queue.enqueue("b", delay=1, key=b"k")
        self.assertEqual(caught.exception.id, first)
        self.assertEqual(queue.enqueue("c", delay=1, key="k", on_key="replace"), first)
        self.assertEqual(queue.id_of_key("k"), first)
        self.assertEqual(queue.cancel_key("k").data, b"c")
        self.assertRaises(due.NotFoundError, queue.cancel_key, "k")

    def test_a_waiting_job_is_changed(self):
        _, queue = manual()
        job_id = queue.enqueue("tea", delay=5)
        self.assertEqual((queue.find(job_id).size, queue.read(job_id)), (3, b"tea"))
        queue.update(job_id, b"x" * 9000)
        self.assertEqual(queue.read(job_id), b"x" * 9000)
        queue.reschedule(job_id, 3 * 10 ** 9)
        self.assertEqual(queue.find(job_id).deadline_ns, 3 * 10 ** 9)
        self.assertEqual([each.id for each in queue.list()], [job_id])
        queue.promote(job_id)
        self.assertEqual(queue.dequeue(0).id, job_id)
        other = queue.enqueue("egg", delay=5)
        self.assertEqual(queue.cancel(other).text, "egg")
        self.assertRaises(due.NotFoundError, queue.cancel, other)

    def test_what_only_some_jobs_have(self):
        clock, queue = manual()
        queue.enqueue("ttl", ttl=1)
        queue.enqueue("expires", expires=2 * 10 ** 9)
        queue.enqueue("1", group="g")
        queue.enqueue("2", group="g")
        queue.enqueue("again", topic="t", every=1, repeat="after")
        queue.pause("t")
        clock.advance(2)
        one = queue.reserve(0)
        self.assertEqual(one.text, "1")
        self.assertIsNone(queue.reserve(0))
        one.ack()
        self.assertEqual(queue.reserve(0).text, "2")
        self.assertEqual(queue.clear_dead(), 2)
        queue.resume("t")
        queue.limit("t", 1)
        queue.reserve(0).ack()
        self.assertEqual(queue.clear("t"), 1)
        self.assertIn("due_", queue.metrics())

    def test_a_full_queue(self):
        queue = due.Queue(capacity=1)
        queue.enqueue("a", delay=100)
        self.assertRaises(due.AgainError, queue.enqueue, "b")
        self.assertRaises(TimeoutError, queue.enqueue, "b", timeout=0.001)


class Threads(unittest.TestCase):
    def test_who_waits_lets_others_run(self):
        queue, got = due.Queue(), []
        taker = threading.Thread(target=lambda: got.extend(job.text for job in queue))
        taker.start()
        for i in range(100):
            queue.enqueue(str(i))
        queue.close(drain=True)
        taker.join(30)
        self.assertFalse(taker.is_alive())
        self.assertEqual(sorted(got, key=int), [str(i) for i in range(100)])
        self.assertRaises(due.ClosedError, queue.dequeue, 0)
        self.assertRaises(due.ClosedError, queue.enqueue, "late")

    def test_a_pool(self):
        queue, seen = due.Queue(retry=due.Retry.fixed(0, attempts=3)), []

        def handle(job):
            seen.append(job.text)
            if job.text == "verb":
                job.ack()
            if job.text == "raise" or (job.text == "nack" and job.failures == 0):
                return due.nack(0) if job.text == "nack" else 1 / 0
            return {"bury": due.bury("cold"), "ack": due.ack()}.get(job.text)

        with self.assertLogs("due", "ERROR"), due.Workers(queue, handle, 2, name="pool") as pool:
            for text in "ack", "plain", "nack", "bury", "raise", "verb":
                queue.enqueue(text)
            queue.close(drain=True, timeout=30)
            stats = queue.stats()
            self.assertEqual((stats["acked"], stats["buried"]), (3, 3))
            self.assertEqual(pool.stats()["handled"], len(seen))
        self.assertEqual(len(seen), 2 + 2 + 1 + 3 + 3)

    def test_a_job_of_a_pool_may_be_kept(self):
        queue, kept, during = due.Queue(), [], []

        def handle(job):
            kept.append(job)
            during.append(job.stopping)

        with due.Workers(queue, handle) as pool:
            queue.enqueue("tea")
            while pool.stats()["acked"] == 0:
                pass
        self.assertEqual(kept[0]._raw.queue, _native.ffi.NULL)
        del pool
        gc.collect()
        self.assertEqual((kept[0].text, during, kept[0].stopping), ("tea", [False], True))

    def test_hooks(self):
        gone, log = [], []
        queue = due.Queue(on_discard=gone.append, on_log=lambda level, text: log.append(text))
        queue.enqueue("left", delay=100)
        queue.close()
        self.assertEqual(gone, [b"left"])
        self.assertTrue(log)

    def test_a_program_may_end_with_all_open(self):
        program = ("import due, time\nq = due.Queue()\nw = due.Workers(q, lambda job: None)\n"
                   "q.enqueue('tea', delay=100)\nj = due.Queue()\nprint('end')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(HERE, os.pardir)},
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))


class Loop(unittest.TestCase):
    def test_a_descriptor(self):
        queue = due.Queue()
        self.assertEqual(select.select([queue], [], [], 0)[0], [])
        queue.enqueue("tea")
        self.assertEqual(select.select([queue], [], [], 30)[0], [queue])

    def test_jobs_in_an_event_loop(self):
        async def main():
            queue, got = due.Queue(), []

            async def take(mark):
                async for job in queue.jobs(reserve=True):
                    job.ack()
                    got.append((mark, job.text))

            takers = [asyncio.create_task(take(mark)) for mark in "ab"]
            await asyncio.sleep(0)
            threading.Thread(target=lambda: [queue.enqueue(str(i)) for i in range(200)]).start()
            while len(got) < 200:
                await asyncio.sleep(0)
            queue.close()
            await asyncio.gather(*takers)
            self.assertEqual(sorted(int(text) for _, text in got), list(range(200)))
            self.assertEqual([job async for job in queue], [])

        asyncio.run(asyncio.wait_for(main(), 60))


    def test_others_have_their_turn_between_jobs(self):
        async def main():
            queue, taken, ticks = due.Queue(), 0, 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            for _ in range(160):
                queue.enqueue("tea")
            ticking = asyncio.create_task(tick())
            async for _ in queue:
                taken += 1
                if taken == 160:
                    break
            self.assertGreaterEqual(ticks, 9)
            ticking.cancel()

        asyncio.run(asyncio.wait_for(main(), 60))


class Stored(unittest.TestCase):
    def test_jobs_in_a_file_outlive_their_queue(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "jobs.db")
            try:
                queue = due.Queue(store=path)
            except due.NotSupportedError as missing:
                self.skipTest(str(missing))
            with queue:
                job_id = queue.enqueue("tea", at=datetime.now(timezone.utc))
                with self.assertRaises(due.BusyError) as caught:
                    due.Queue(store=path, open_timeout=0.001)
                self.assertTrue(str(caught.exception))
            del queue
            with due.Queue(store=path) as queue:
                with queue.reserve(30) as job:
                    self.assertEqual((job.id, job.text), (job_id, "tea"))
                queue.flush()

    def test_a_store_that_cannot_be_opened(self):
        for where, kind in (("http://here", due.Error), ("rediss://here", due.Error),
                            ("redis://127.0.0.1:1", due.StoreError)):
            with self.assertRaises(kind):
                due.Queue(store=where, open_timeout=0.05)

    @unittest.skipUnless(os.environ.get("DUE_STORE_URL"), "no server was started")
    def test_jobs_in_a_redis(self):
        with due.Queue(store=os.environ["DUE_STORE_URL"], name="python") as queue:
            queue.enqueue("tea")
            with queue.reserve(30) as job:
                self.assertEqual(job.text, "tea")


class Shown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "figures")

    def write(self, number, *sets):
        """A file with these sets, of which the one with that number was written last."""
        head = _native.ffi.new("struct due_figures_head *", {
            "magic": b"duefigs", "version": 1, "number": number,
            "head_bytes": _native.ffi.sizeof("struct due_figures_head"),
            "set_bytes": _native.ffi.sizeof("struct due_figures")})
        raw = _native.ffi.new("struct due_figures[2]")
        for each in sets:
            raw[each["number"] % 2] = each
        with open(self.path, "wb") as file:
            file.write(_native.ffi.buffer(head)[:] + _native.ffi.buffer(raw)[:])

    def test_figures_are_those_of_the_queue(self):
        clock, queue = manual(name="orders", metrics=True)
        queue.enqueue("tea", delay=5e-9)
        queue.enqueue("milk", delay=1, topic="other")
        clock.advance(1e-8)
        self.assertEqual(queue.dequeue(0).text, "tea")
        queue.show_figures(self.path)
        with due.Figures(self.path) as figures:
            self.assertEqual(figures.head()["version"], 1)
            self.assertTrue(figures.alive)
            found = figures.read()
            self.assertEqual((found.queue, found.pid, found.now_ns, found.oldest_ns),
                             ("orders", os.getpid(), 10 ** 9 + 10, None))
            self.assertEqual((found.closed, found.measured, found.stored), (False, True, False))
            self.assertEqual((found.stats["enqueued"], found.stats["waiting"]), (2, 1))
            self.assertEqual(list(found.topics), ["", "other"])
            self.assertEqual((found.topics[""]["dequeued"], found.topics["other"]["delayed"]),
                             (1, 1))
            self.assertEqual(found.topic_count, 2)
            self.assertGreater(found.late_ns(1), 5)
            self.assertEqual(found.pools, {})
            queue.close()
            last = figures.read()
            self.assertTrue(last.closed)
            self.assertGreater(last.number, found.number)
            self.assertEqual(last.stats["discarded"], 1)
            del queue
            gc.collect()
            self.assertFalse(figures.alive)
            self.assertFalse(os.path.exists(self.path))

    def test_a_program_that_has_died_is_not_alive(self):
        text = ("import due, os, sys; queue = due.Queue(name='dead'); "
                "queue.show_figures(sys.argv[1]); os._exit(0)")
        subprocess.run([sys.executable, "-c", text, self.path], check=True,
                       env={**os.environ, "PYTHONPATH": os.path.join(HERE, os.pardir)})
        with due.Figures(self.path) as figures:
            self.assertEqual(figures.read().queue, "dead")
            self.assertFalse(figures.read().closed)
            self.assertFalse(figures.alive)

    def test_pools_and_topics_have_names(self):
        self.write(7, {"number": 7, "topics": 9, "topics_here": 2, "pools_here": 1,
                       "topic": [{"name": b"hot"}, {"name": b"x" * 256}],
                       "pool": [{"name": b"cooks", "stats": {"threads": 3}}]})
        found = due.Figures(self.path).read()
        self.assertEqual(list(found.topics), ["hot", "x" * 256])
        self.assertEqual(found.topic_count, 9)
        self.assertEqual(found.pools["cooks"]["threads"], 3)

    def test_a_set_that_is_written_over_is_read_again(self):
        one, other = {"number": 1, "queue": b"one"}, {"number": 2, "queue": b"other"}
        self.write(1, one)
        figures, pread, looks = due.Figures(self.path), os.pread, []

        def slow(fd, size, at):
            found = pread(fd, size, at)
            looks.append(at)
            if len(looks) == 2:
                self.write(2, one, other)
            return found

        with mock.patch("os.pread", slow):
            self.assertEqual(figures.read().queue, "other")
        self.assertEqual(len(looks), 6)

    def test_what_makes_no_sense_is_refused(self):
        for each in ({"number": 3}, {"number": 1, "topics_here": 1},
                     {"number": 1, "topics": 200, "topics_here": 129},
                     {"number": 1, "pools_here": 17}):
            self.write(1, each)
            with self.assertRaisesRegex(ValueError, "no sense"):
                due.Figures(self.path).read()
        self.write(0)
        with mock.patch("due.figures.PAUSE", 0), self.assertRaisesRegex(ValueError, "no figures"):
            due.Figures(self.path).read()
        self.write(1, {"number": 1})
        os.truncate(self.path, 1000)
        with self.assertRaisesRegex(ValueError, "too short"):
            due.Figures(self.path).read()

    def test_what_is_no_file_of_figures_is_refused(self):
        with self.assertRaises(FileNotFoundError):
            due.Figures(self.path)
        for text in "somebody's", "somebody's" * 100:
            with open(self.path, "w", encoding="ascii") as file:
                file.write(text)
            with self.assertRaisesRegex(ValueError, "no file of figures"):
                due.Figures(self.path)
        self.write(1)
        with open(self.path, "r+b") as file:
            file.seek(8)
            file.write(b"\2")
        with self.assertRaisesRegex(ValueError, "another version"):
            due.Figures(self.path)
        with self.assertRaises(ValueError):
            due.Queue().show_figures("a\0b")
        with self.assertRaises(due.NotFoundError):
            due.Queue().show_figures(self.path + "/none")


if __name__ == "__main__":
    unittest.main(verbosity=1)
