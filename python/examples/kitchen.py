"""kitchen.py - a queue from Python: with threads, with asyncio, in a file."""

import asyncio
import os
import tempfile

import due


def first():
    """The program of the README."""
    with due.Queue() as queue:
        queue.enqueue("the tea", delay=0.3)
        queue.enqueue("the egg", delay=0.15)
        for _ in range(2):
            print(queue.dequeue(timeout=5).text, "is ready")


def answered_for():
    """A job that was reserved has to be answered for."""
    with due.Queue(retry=due.Retry.fixed(0.01, attempts=3)) as queue:
        queue.enqueue("the soup", key="table 4")
        try:
            queue.enqueue("the soup, again", key="table 4")
        except due.ExistsError as error:
            print("it has been ordered:", error)
        while True:
            try:
                with queue.reserve(timeout=5) as job:
                    if job.attempts < 3:
                        raise RuntimeError("it is cold")
                    print(job.text, "in attempt", job.attempts)
                    break
            except RuntimeError as error:
                print(error)


def pool():
    """Threads that call a function for each job."""
    def cook(job):
        if job.text == "the fish":
            return due.bury("there is none")
        return due.ack() if job.attempts > 1 else due.nack(0.001)

    queue = due.Queue()
    with due.Workers(queue, cook, threads=2):
        queue.enqueue("the fish")
        queue.enqueue("the rice")
        queue.close(drain=True)
    print([f"{dead.cause}: {dead.reason}" for dead in queue.list_dead()])


async def loop():
    """Jobs in an event loop, without a thread."""
    queue = due.Queue()
    for minute in 1, 2, 3:
        queue.enqueue(f"minute {minute}", delay=minute / 100)
    async for job in queue:
        print(job.text)
        if job.text == "minute 3":
            queue.close()


def stored(path):
    """Jobs that outlive the program."""
    with due.Queue(store=path) as queue:
        queue.enqueue("the bread")
    del queue
    with due.Queue(store=path) as queue, queue.reserve(timeout=30) as job:
        print(job.text, "is there still")


def tested():
    """Time is turned by hand."""
    clock = due.ManualClock()
    queue = due.Queue(manual=clock)
    queue.enqueue("the cheese", delay=3600 * 24 * 365)
    clock.advance(3600 * 24 * 365)
    print(queue.dequeue(0).text, "has ripened")


first()
answered_for()
pool()
asyncio.run(loop())
tested()
with tempfile.TemporaryDirectory() as folder:
    stored(os.path.join(folder, "jobs.db"))
