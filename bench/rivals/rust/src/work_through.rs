//! Producers put in while consumers take: through, slow, burst.

use crate::cell::{measure_threads, put_ends, Body, Cell, Counter, Finish, Latest};
use crate::clock::{self, real, SECOND};
use crate::outcome::{die, percentile, Tally, WRONG};
use crate::queue::{Load, Queue};
use std::sync::atomic::Ordering;
use std::sync::Mutex;

const BURSTS: i64 = 200;
const BURST_IDLE: i64 = 5_000_000;
const BURST_LOOK: i64 = 100_000;
const PATIENT: i64 = 10 * SECOND;
const THINK_JOBS: u64 = 1000;

fn produce<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, p: i64, latest: &Latest) {
    let mut most = 0;
    for i in (p..c.count).step_by(c.o.producers) {
        let at = (c.spread() > 0).then(|| clock::now() + c.delay(i));
        most = most.max(at.unwrap_or(0));
        q.put(c.load(i), at);
    }
    latest.0.store(most, Ordering::Relaxed);
}

/// One consumer; it is otherwise busy after every 1,000 jobs.
fn consume<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, consumer: usize, think: i64) -> Tally {
    let mut tally = Tally::default();
    let dated = c.spread() > 0;
    q.consume(consumer, |load, at| {
        if dated && at > clock::now() {
            tally.early += 1;
        }
        tally.add(&load, c.o.payload);
        if think > 0 && tally.count % THINK_JOBS == 0 {
            clock::spin_until(real() + think);
        }
    });
    tally
}

/// When the producers had finished, in s from their start.
fn pass<L: Load, Q: Queue<L>>(c: &mut Cell, think: i64) -> f64 {
    c.prepare(c.jobs());
    let q: Q = c.open_queue(c.count);
    let latest: Vec<Latest> = (0..c.o.producers).map(|_| Latest::default()).collect();
    let finish = Finish::default();
    let sum = Mutex::new(Tally::default());
    let mut bodies: Vec<Body> = Vec::new();
    let cell = &*c;

    for (p, own) in latest.iter().enumerate() {
        let (q, finish, latest) = (&q, &finish, &latest);
        bodies.push(Box::new(move || {
            finish.first.fetch_min(real(), Ordering::Relaxed);
            produce(cell, q, p as i64, own);
            finish.producer(cell, q, latest);
        }));
    }
    for i in 0..cell.o.consumers {
        let (q, sum) = (&q, &sum);
        bodies.push(Box::new(move || {
            let tally = consume(cell, q, i, think);
            sum.lock().unwrap().sum(&tally);
        }));
    }
    (c.wall, c.used) = measure_threads(bodies, || ());
    c.value = c.millions(c.count);
    c.out = sum.into_inner().unwrap();
    c.check(c.count);
    (finish.last.into_inner() - finish.first.into_inner()) as f64 / 1e9
}

pub fn through<L: Load, Q: Queue<L>>(c: &mut Cell) {
    pass::<L, Q>(c, 0);
}

pub fn slow<L: Load, Q: Queue<L>>(c: &mut Cell) {
    c.wall = pass::<L, Q>(c, c.o.think);
    c.value = c.millions(c.count);
}

/// Wait, without being in the way, until so many are out.  The time of the last.
fn burst_out(counters: &[Counter], count: u64) -> i64 {
    let give_up = real() + PATIENT;
    loop {
        clock::nap(BURST_LOOK);
        let out: u64 = counters.iter().map(|k| k.taken.load(Ordering::Acquire)).sum();
        if out >= count {
            return counters.iter().map(|k| k.last.load(Ordering::Relaxed)).max().unwrap_or(0);
        }
        if real() > give_up {
            die(WRONG, &format!("{out} jobs of {count} came out, and no more"));
        }
    }
}

fn burst_produce<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, counters: &[Counter]) -> Vec<i64> {
    let each = c.count / BURSTS;
    let took = (0..BURSTS).map(|b| {
        clock::nap(BURST_IDLE);
        let from = real();
        for i in b * each..(b + 1) * each {
            q.put(c.load(i), None);
        }
        burst_out(counters, ((b + 1) * each) as u64) - from
    });
    let took = took.collect();
    put_ends(c, q, real());
    took
}

fn burst_consume<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, i: usize, shown: &Counter) -> Tally {
    let mut tally = Tally::default();
    q.consume(i, |load, at| {
        let now = clock::now();
        tally.early += u64::from(at > now);
        tally.add(&load, c.o.payload);
        shown.last.store(now, Ordering::Relaxed);
        shown.taken.store(tally.count, Ordering::Release);
    });
    tally
}

pub fn burst<L: Load, Q: Queue<L>>(c: &mut Cell) {
    let each = (c.jobs() / BURSTS).max(1);
    c.prepare(each * BURSTS);
    let q: Q = c.open_queue(c.count);
    let counters: Vec<Counter> = (0..c.o.consumers).map(|_| Counter::default()).collect();
    let mut took = Vec::new();
    let sum = Mutex::new(Tally::default());
    let cell = &*c;

    let mut bodies: Vec<Body> = vec![Box::new(|| took = burst_produce(cell, &q, &counters))];
    for (i, shown) in counters.iter().enumerate() {
        let (q, sum) = (&q, &sum);
        bodies.push(Box::new(move || {
            let tally = burst_consume(cell, q, i, shown);
            sum.lock().unwrap().sum(&tally);
        }));
    }
    (c.wall, c.used) = measure_threads(bodies, || ());
    took.sort_unstable();
    c.value = percentile(&took, 50.0) * 1e3 / each as f64;
    c.out = sum.into_inner().unwrap();
    c.check(c.count);
}
