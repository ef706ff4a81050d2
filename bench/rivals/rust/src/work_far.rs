//! Jobs far away: enqueue, cancel, mixed, memory.  Nothing becomes due by itself.

use crate::cell::{measure_threads, Body, Cell};
use crate::outcome::{die, WRONG};
use crate::queue::{Direct, Inlet, Load};
use crate::system::resident;

/// Put in all jobs; handles are in the order put in.
pub fn fill<L: Load, D: Direct<L>>(c: &Cell, q: &mut D, end: i64, handles: &mut Vec<D::Handle>) {
    for i in 0..end {
        handles.push(q.put(c.load(i), c.at_grained(i)));
    }
}

fn put_all<L: Load, D: Direct<L>>(c: &Cell, q: &mut D) {
    for i in 0..c.count {
        q.put(c.load(i), c.at_grained(i));
    }
}

fn none_is_due<L: Load, D: Direct<L>>(q: &mut D) {
    if let Some((load, _)) = q.take() {
        die(WRONG, &format!("job {} came before its time", load.number()));
    }
}

pub fn enqueue<L: Load, D: Direct<L>>(c: &mut Cell) {
    c.prepare(c.jobs());
    let mut q: D = c.open_direct(c.count, false);
    let producers = c.o.producers as i64;
    if producers == 1 {
        c.measure(|c| put_all(c, &mut q));
    } else {
        put_by_threads(c, &mut q, producers);
    }
    c.value = c.millions(c.count);
    none_is_due(&mut q);
    c.turn_past_all(&mut q);
    c.drain(&mut q, true, &[]);
    c.check(c.count);
}

fn put_by_threads<L: Load, D: Direct<L>>(c: &mut Cell, q: &mut D, producers: i64) {
    let cell = &*c;
    let bodies = (0..producers).map(|p| {
        let inlet = q.inlet();
        let body: Body = Box::new(move || {
            for i in (p..cell.count).step_by(producers as usize) {
                inlet.put(cell.load(i), cell.at_grained(i));
            }
        });
        body
    });
    (c.wall, c.used) = measure_threads(bodies.collect(), || q.receive(cell.count));
}

/// The jobs of a thread that it cancels: shuffled handles, and the numbers they stand for.
struct Doomed<H> {
    handles: Vec<H>,
    order: Vec<u32>,
}

impl<H: Clone> Doomed<H> {
    fn new(c: &Cell, handles: &[H], percent: usize) -> Self {
        let mut order = c.stream().shuffled(handles.len());
        order.truncate(handles.len() * percent / 100);
        Doomed { handles: order.iter().map(|&i| handles[i as usize].clone()).collect(), order }
    }

    fn cancel<L: Load, D: Direct<L, Handle = H>>(&mut self, q: &mut D) {
        for (nth, handle) in self.handles.drain(..).enumerate() {
            if !q.cancel(handle) {
                die(WRONG, &format!("job {} could not be cancelled", self.order[nth]));
            }
        }
    }

    /// They have come out, and must not come again.
    fn tally(&self, c: &mut Cell) -> Vec<bool> {
        let mut gone = vec![false; c.count as usize];
        for &number in &self.order {
            gone[number as usize] = true;
            c.out.out(u64::from(number));
        }
        gone
    }
}

pub fn cancel<L: Load, D: Direct<L>>(c: &mut Cell) {
    c.prepare(c.jobs());
    let mut q: D = c.open_direct(c.count, false);
    let mut handles = Vec::with_capacity(c.count as usize);
    fill(c, &mut q, c.count, &mut handles);
    let mut doomed = Doomed::new(c, &handles, 100);
    c.measure(|_| doomed.cancel(&mut q));
    c.value = c.millions(c.count);
    let gone = doomed.tally(c);
    c.turn_past_all(&mut q);
    c.drain(&mut q, true, &gone);
    c.check(c.count);
}

pub fn mixed<L: Load, D: Direct<L>>(c: &mut Cell) {
    c.prepare(c.jobs());
    let mut q: D = c.open_direct(c.count, false);
    let mut handles = Vec::with_capacity(c.count as usize);
    c.measure(|c| fill(c, &mut q, c.count, &mut handles));
    let mut doomed = Doomed::new(c, &handles, c.o.percent);
    c.measure(|c| {
        doomed.cancel(&mut q);
        c.turn_past_all(&mut q);
        c.drain(&mut q, false, &[]);
    });
    c.value = c.wall * 1e9 / c.count as f64;
    doomed.tally(c);
    c.check(c.count);
}

pub fn memory<L: Load, D: Direct<L>>(c: &mut Cell, cancels: bool) {
    c.prepare(c.jobs());
    let mut handles: Vec<D::Handle> = Vec::with_capacity(c.count as usize);
    touch(&mut handles);
    let before = resident();
    let mut q: D = c.measure(|c| {
        let mut q: D = c.open_direct(c.count, true);
        fill(c, &mut q, c.count, &mut handles);
        q
    });
    let full = resident();
    let mut doomed = Doomed::new(c, &handles, if cancels { 100 } else { 0 });
    doomed.cancel(&mut q);
    let gone = doomed.tally(c);
    drop((doomed, handles));
    c.turn_past_all(&mut q);
    c.drain(&mut q, true, &gone);
    drop(gone);
    q.trim();
    let after = resident();
    c.value = (full - before).max(0) as f64 / c.count as f64;
    if full > before {
        c.say("given_back_percent", 100.0 * (full - after) as f64 / (full - before) as f64);
    }
    c.check(c.count);
}

/// The memory that is reserved is there from now on.
fn touch<T>(room: &mut Vec<T>) {
    let bytes = room.capacity() * size_of::<T>();
    // SAFETY: the bytes are reserved, and hold no value yet.
    unsafe { std::ptr::write_bytes(room.as_mut_ptr().cast::<u8>(), 1, bytes) };
}
