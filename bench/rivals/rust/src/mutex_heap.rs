//! A mutex, a condition variable and the standard library's heap of plain values.
//!
//! Who waits, waits until the head's deadline; a new head wakes one waiter, and so does who takes a
//! job and leaves others.

use crate::clock;
use crate::queue::{Direct, Family, Inlet, Load, Queue, Setup, END};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub struct MutexHeapFamily;

impl Family for MutexHeapFamily {
    const NAME: &'static str = "rust-mutex-heap";
    const CANCELS: bool = false;
    type Queue<L: Load> = MutexHeap<L>;
    type Direct<L: Load> = MutexHeap<L>;

    fn about() -> String {
        "Mutex<BinaryHeap>, Condvar, of Rust's standard library".to_string()
    }
}

struct Entry<L> {
    at: i64,
    load: L,
}

impl<L> Ord for Entry<L> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

impl<L> PartialOrd for Entry<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<L> PartialEq for Entry<L> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<L> Eq for Entry<L> {}

struct State<L> {
    heap: BinaryHeap<Reverse<Entry<L>>>,
    waiting: usize,
}

impl<L> State<L> {
    fn head(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }
}

struct Shared<L> {
    state: Mutex<State<L>>,
    changed: Condvar,
}

pub struct MutexHeap<L>(Arc<Shared<L>>);

impl<L> Clone for MutexHeap<L> {
    fn clone(&self) -> Self {
        MutexHeap(self.0.clone())
    }
}

impl<L: Load> MutexHeap<L> {
    fn new(setup: &Setup) -> Self {
        let mut heap = BinaryHeap::new();
        if !setup.lean {
            let mut room = Vec::new();
            room.resize_with(setup.jobs, || {
                Reverse(Entry { at: 1, load: L::make(0, setup.payload.min(8)) })
            });
            room.clear();
            heap = BinaryHeap::from(room);
        }
        let state = Mutex::new(State { heap, waiting: 0 });
        MutexHeap(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State<L>> {
        self.0.state.lock().unwrap()
    }

    fn add(&self, load: L, at: i64) {
        let mut state = self.lock();
        let first = state.head().is_none_or(|head| at < head);
        state.heap.push(Reverse(Entry { at, load }));
        let wake = first && state.waiting > 0;
        drop(state);
        if wake {
            self.0.changed.notify_one();
        }
    }

    fn pop(&self, mut state: MutexGuard<'_, State<L>>) -> Option<Entry<L>> {
        let Reverse(entry) = state.heap.pop()?;
        let wake = !state.heap.is_empty() && state.waiting > 0;
        drop(state);
        if wake {
            self.0.changed.notify_one();
        }
        Some(entry)
    }

    fn wait_and_pop(&self) -> Option<Entry<L>> {
        let mut state = self.lock();
        loop {
            let wait = match state.head() {
                Some(at) => match at - clock::now() {
                    ..=0 => return self.pop(state),
                    ns => Some(Duration::from_nanos(ns as u64)),
                },
                None => None,
            };
            state.waiting += 1;
            state = match wait {
                Some(time) => self.0.changed.wait_timeout(state, time).unwrap().0,
                None => self.0.changed.wait(state).unwrap(),
            };
            state.waiting -= 1;
        }
    }
}

impl<L: Load> Queue<L> for MutexHeap<L> {
    fn open(setup: &Setup) -> Self {
        MutexHeap::new(setup)
    }

    fn put(&self, load: L, at: Option<i64>) {
        self.add(load, at.unwrap_or_else(clock::now));
    }

    fn consume(&self, _consumer: usize, mut got: impl FnMut(L, i64)) {
        while let Some(entry) = self.wait_and_pop().filter(|entry| entry.load.number() != END) {
            got(entry.load, entry.at);
        }
    }
}

impl<L: Load> Inlet<L> for MutexHeap<L> {
    fn put(&self, load: L, at: i64) {
        self.add(load, at);
    }
}

impl<L: Load> Direct<L> for MutexHeap<L> {
    type Handle = ();
    type Inlet = MutexHeap<L>;
    const GRAIN: i64 = 1;

    fn open(setup: &Setup) -> Self {
        MutexHeap::new(setup)
    }

    fn put(&mut self, load: L, at: i64) {
        self.add(load, at);
    }

    fn take(&mut self) -> Option<(L, i64)> {
        let state = self.lock();
        if state.head()? > clock::now() {
            return None;
        }
        self.pop(state).map(|entry| (entry.load, entry.at))
    }

    fn cancel(&mut self, _handle: ()) -> bool {
        false
    }

    fn turn(&mut self, to: i64) {
        clock::turn(to);
    }

    fn inlet(&self) -> MutexHeap<L> {
        self.clone()
    }

    fn receive(&mut self, _jobs: i64) {}

    fn trim(&mut self) {
        self.lock().heap.shrink_to_fit();
    }
}
