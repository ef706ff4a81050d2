//! From putting in a job due at once to a consumer that is blocked in its take.

use crate::cell::{measure_threads, Body, Cell};
use crate::clock::{self, real, SECOND};
use crate::options::Place;
use crate::outcome::{die, percentile, Tally, CANNOT, WRONG};
use crate::queue::{Load, Queue, END};
use crate::system;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

const ALONE: u64 = u64::MAX - 1; // put in while nobody waits: not counted
const SETTLE: i64 = 200_000; // until the consumer is asleep for certain
const LOOK: i64 = 20_000;
const PATIENT: i64 = 10 * SECOND;

/// What the consumer shows, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Shown {
    taken: AtomicI64, // so many jobs, stored after at
    at: AtomicI64,    // when its last take returned
}

#[derive(Default)]
struct Times {
    whole: Vec<i64>,
    call: Vec<i64>,
    alone: Vec<i64>,
}

fn await_taken(c: &Cell, shown: &Shown, n: i64) {
    let give_up = real() + PATIENT;
    while shown.taken.load(Ordering::Acquire) < n {
        if c.o.place == Place::Same {
            clock::nap(LOOK); // the consumer needs the core
        }
        if real() > give_up {
            die(WRONG, "a job that was put in did not come out");
        }
    }
}

fn produce<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, shown: &Shown, times: &mut Times) {
    await_taken(c, shown, c.count);
    for i in 0..c.count {
        if c.o.place == Place::Same {
            clock::nap(SETTLE);
        } else {
            clock::spin_until(real() + SETTLE);
        }
        let load = c.load(i);
        let from = clock::now();
        q.put(load, None);
        times.call.push(clock::now() - from);
        await_taken(c, shown, c.count + i + 1);
        times.whole.push(shown.at.load(Ordering::Relaxed) - from);
    }
    q.put(L::make(END, c.o.payload), None);
}

fn consume<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, shown: &Shown) -> Tally {
    let mut tally = Tally::default();
    let mut taken = 0;
    q.consume(0, |load, at| {
        let now = clock::now();
        if load.number() != ALONE {
            tally.early += u64::from(at > now);
            tally.add(&load, c.o.payload);
        }
        taken += 1;
        shown.at.store(now, Ordering::Relaxed);
        shown.taken.store(taken, Ordering::Release);
    });
    tally
}

/// What putting in costs while nobody waits.
fn alone<L: Load, Q: Queue<L>>(c: &Cell, q: &Q) -> Vec<i64> {
    let one = |_| {
        let load = c.load(ALONE as i64);
        let from = clock::now();
        q.put(load, None);
        clock::now() - from
    };
    (0..c.count).map(one).collect()
}

/// The core of the producer, and that of the consumer.
fn choose(c: &Cell) -> (usize, usize) {
    let cores = system::cores();
    if c.o.place == Place::Same {
        return (cores[0], cores[0]);
    }
    if cores.len() < 2 {
        die(CANNOT, "this takes two cores");
    }
    (cores[0], cores[1])
}

pub fn handoff<L: Load, Q: Queue<L>>(c: &mut Cell) {
    c.o.consumers = 1;
    c.prepare(c.jobs());
    let (here, there) = choose(c);
    let q: Q = c.open_queue(2 * c.count);
    let (shown, over) = (Shown::default(), AtomicBool::new(false));
    let mut times = Times { alone: alone(c, &q), ..Times::default() };
    let mut tally = Tally::default();
    let cell = &*c;

    let mut bodies: Vec<Body> = vec![
        Box::new(|| {
            system::pin(&[here]);
            produce(cell, &q, &shown, &mut times);
            over.store(true, Ordering::Relaxed);
        }),
        Box::new(|| {
            system::pin(&[there]);
            tally = consume(cell, &q, &shown);
        }),
    ];
    if cell.o.place == Place::Awake {
        // Keeps the consumer's core from idling, without a hint: that would let it rest.
        #[allow(clippy::missing_spin_loop)]
        bodies.push(Box::new(|| {
            system::pin(&[there]);
            system::give_way();
            while !over.load(Ordering::Relaxed) {}
        }));
    }
    (c.wall, c.used) = measure_threads(bodies, || ());
    c.out = tally;
    c.check(c.count);
    times.whole.sort_unstable();
    times.call.sort_unstable();
    times.alone.sort_unstable();
    c.value = percentile(&times.whole, 50.0);
    c.say("p90_us", percentile(&times.whole, 90.0));
    c.say("call_p50_us", percentile(&times.call, 50.0));
    c.say("call_alone_p50_us", percentile(&times.alone, 50.0));
}
