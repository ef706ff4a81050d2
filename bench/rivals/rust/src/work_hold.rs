//! As many come as go: hold, timeout.
//!
//! Where the clock must stand for the next head is told beforehand by a heap of the cell's own: the
//! deadlines do not depend on which of several equal jobs is taken, for the job put back is always
//! the next number.

use crate::cell::Cell;
use crate::clock::{SECOND, START};
use crate::outcome::{die, USAGE, WRONG};
use crate::queue::{Direct, Load};
use crate::stream::mean_spread;
use crate::work_far::fill;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The deadlines of the heads, one after another.
fn foretell(c: &Cell, live: i64, holds: i64) -> Vec<i64> {
    let mut waiting: BinaryHeap<_> = (0..live).map(|i| Reverse(c.at_grained(i))).collect();
    let mut heads = Vec::with_capacity(holds as usize);
    for i in live..live + holds {
        if let Some(mut head) = waiting.peek_mut() {
            heads.push(head.0);
            head.0 = c.grained(head.0 + c.delay(i));
        }
    }
    heads
}

/// `heads` are those from number `from` on.
fn holds<L: Load, D: Direct<L>>(c: &mut Cell, q: &mut D, heads: &[i64], from: i64) {
    for (i, &head) in (from..).zip(heads) {
        q.turn(head);
        let Some((load, at)) = q.take() else {
            die(WRONG, &format!("no job at {head}, the next deadline"));
        };
        if at != head {
            let number = load.number();
            die(WRONG, &format!("job {number} came, due at {at}, instead of that due at {head}"));
        }
        c.out.add(&load, c.o.payload);
        q.put(c.load(i), c.grained(head + c.delay(i)));
    }
}

pub fn hold<L: Load, D: Direct<L>>(c: &mut Cell) {
    let (live, jobs) = (c.o.live, c.jobs());
    c.o.spread = c.o.spread.or(Some(mean_spread(c.o.shape)));
    c.prepare(live + 2 * jobs);
    let mut q: D = c.open_direct(live, false);
    c.base = START;
    let heads = foretell(c, live, 2 * jobs);
    let (uncounted, counted) = heads.split_at(jobs as usize);
    for i in 0..live {
        q.put(c.load(i), c.at_grained(i));
    }
    holds(c, &mut q, uncounted, live);
    c.measure(|c| holds(c, &mut q, counted, live + jobs));
    c.value = c.wall * 1e9 / jobs as f64;
    q.turn(heads[heads.len() - 1] + c.spread() + SECOND);
    c.drain(&mut q, false, &[]);
    c.check(live + 2 * jobs);
}

pub fn timeout<L: Load, D: Direct<L>>(c: &mut Cell) {
    let (live, jobs) = (c.o.live, c.jobs());
    if live < c.o.producers as i64 {
        die(USAGE, "--live must be at least --producers");
    }
    c.prepare(live + jobs);
    let mut q: D = c.open_direct(live + 1, false);
    c.base = START + 30 * SECOND;
    let mut ring = Vec::with_capacity(live as usize);
    fill(c, &mut q, live, &mut ring);
    let mut oldest = 0;
    c.measure(|c| {
        for i in live..c.count {
            let handle = q.put(c.load(i), c.at_grained(i));
            cancel(&mut q, std::mem::replace(&mut ring[oldest], handle));
            oldest = if oldest + 1 < ring.len() { oldest + 1 } else { 0 };
        }
    });
    c.value = c.millions(jobs);
    for handle in ring {
        cancel(&mut q, handle);
    }
    c.turn_past_all(&mut q);
    if let Some((load, _)) = q.take() {
        die(WRONG, &format!("job {} came although it was cancelled", load.number()));
    }
    (0..c.count as u64).for_each(|number| c.out.out(number));
    c.check(c.count);
}

fn cancel<L: Load, D: Direct<L>>(q: &mut D, handle: D::Handle) {
    if !q.cancel(handle) {
        die(WRONG, "the oldest job could not be cancelled");
    }
}
