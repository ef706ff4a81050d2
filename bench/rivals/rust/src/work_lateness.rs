//! How late a job is taken that was put in long before.

use crate::cell::{measure_threads, put_ends, Body, Cell};
use crate::clock;
use crate::outcome::{percentile, Tally};
use crate::queue::{Load, Queue};
use std::sync::Mutex;

const LEAD: i64 = 50_000_000; // between putting in and the first
const LEAD_JOB: i64 = 2000; // and for each job

fn take_on_time<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, i: usize) -> (Tally, Vec<i64>) {
    let mut tally = Tally::default();
    let mut late = Vec::with_capacity(c.count as usize);
    q.consume(i, |load, _| {
        let now = clock::now();
        let number = load.number();
        if number < c.count as u64 {
            // Its own deadline: the queue may have rounded it up.
            late.push(now - c.at(number as i64));
            tally.early += u64::from(late[late.len() - 1] < 0);
        }
        tally.add(&load, c.o.payload);
    });
    (tally, late)
}

pub fn lateness<L: Load, Q: Queue<L>>(c: &mut Cell) {
    let jobs = c.jobs();
    c.o.spread = c.o.spread.or(Some(jobs * c.o.gap));
    c.prepare(jobs);
    let q: Q = c.open_queue(jobs);
    c.base = clock::now() + LEAD + jobs * LEAD_JOB;
    for i in 0..jobs {
        q.put(c.load(i), Some(c.at(i)));
    }
    put_ends(c, &q, c.base + c.spread() + clock::SECOND / 1000);

    let all = Mutex::new((Tally::default(), Vec::new()));
    let cell = &*c;
    let bodies = (0..cell.o.consumers).map(|i| {
        let (q, all) = (&q, &all);
        let body: Body = Box::new(move || {
            let (tally, mut late) = take_on_time(cell, q, i);
            let mut all = all.lock().unwrap();
            all.0.sum(&tally);
            all.1.append(&mut late);
        });
        body
    });
    (c.wall, c.used) = measure_threads(bodies.collect(), || ());
    let (tally, mut late) = all.into_inner().unwrap();
    c.out = tally;
    c.check(jobs);
    late.sort_unstable();
    c.value = percentile(&late, 50.0);
    c.say("p10_us", percentile(&late, 10.0));
    c.say("p90_us", percentile(&late, 90.0));
    c.say("p99_us", percentile(&late, 99.0));
    c.say("p999_us", percentile(&late, 99.9));
    c.say("cpu_us_per_job", c.used.cpu * 1e6 / jobs as f64);
}
