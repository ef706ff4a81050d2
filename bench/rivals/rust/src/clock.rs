//! The clock queues go by: monotonic, or a virtual one that stands until one thread turns it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub const SECOND: i64 = 1_000_000_000;
pub const HOUR: i64 = 3600 * SECOND;
/// What the virtual clock shows at first.
pub const START: i64 = 1000 * SECOND;

static EPOCH: OnceLock<Instant> = OnceLock::new();
// Turned while no other thread looks at it, so that nothing depends on their order.
static STANDS: AtomicBool = AtomicBool::new(false);
static SHOWN: AtomicI64 = AtomicI64::new(START);

/// Called once, before all others.
pub fn start() {
    epoch();
}

pub fn epoch() -> Instant {
    *EPOCH.get_or_init(Instant::now)
}

/// Monotonic, whatever now() shows.
pub fn real() -> i64 {
    epoch().elapsed().as_nanos() as i64
}

pub fn now() -> i64 {
    if STANDS.load(Relaxed) {
        SHOWN.load(Relaxed)
    } else {
        real()
    }
}

pub fn make_virtual() {
    STANDS.store(true, Relaxed);
}

pub fn turn(to: i64) {
    SHOWN.store(to, Relaxed);
}

pub fn spin_until(at: i64) {
    while real() < at {}
}

pub fn nap(ns: i64) {
    std::thread::sleep(Duration::from_nanos(ns as u64));
}
