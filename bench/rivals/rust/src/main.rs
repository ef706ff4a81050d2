//! bench_rust runs one cell: a queue in Rust does one workload once, and prints one line.
//!
//!     bench_rust WORKLOAD --subject NAME [--option VALUE]...
//!     bench_rust --list | --list-workloads
//!
//! README.md of the benchmarks says what the options, the line and the exit status mean.

mod cell;
mod clock;
mod mutex_heap;
mod options;
mod outcome;
mod queue;
mod stream;
mod system;
#[cfg(feature = "tokio")]
mod tokio_queue;
mod work_far;
mod work_handoff;
mod work_hold;
mod work_lateness;
mod work_through;

use cell::Cell;
use clock::{HOUR, SECOND};
use options::Options;
use outcome::{die, CANNOT, USAGE};
use queue::{Bare, Bytes, Direct, Family, Load};

struct Workload {
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    jobs: i64,
    spread: Option<i64>, // None: the workload reckons it
    cancels: bool,       // it needs that
}

const MILLION: i64 = 1_000_000;

#[rustfmt::skip]
const WORKLOADS: [Workload; 11] = [
    workload("enqueue", "putting in jobs far away", "M/s", MILLION, Some(HOUR), false),
    workload("through", "putting in while others take", "M/s", MILLION, Some(0), false),
    workload("lateness", "how late a job is taken", "us", 10_000, None, false),
    workload("handoff", "from putting in to a blocked consumer", "us", 2_000, Some(0), false),
    workload("cancel", "cancelling jobs in random order", "M/s", MILLION, Some(HOUR), true),
    workload("timeout", "putting in a job and cancelling the oldest", "M pairs/s", MILLION,
             Some(SECOND), true),
    workload("hold", "taking the head and putting it back later", "ns", MILLION, None, false),
    workload("memory", "resident memory of a pending job", "bytes", MILLION, Some(HOUR), false),
    workload("mixed", "putting in, cancelling some, taking the rest", "ns a job", MILLION,
             Some(HOUR), false),
    workload("burst", "many jobs at once after a pause", "ns a job", 100_000, Some(0), false),
    workload("slow", "putting in while the consumers are busy", "M/s", MILLION, Some(0), false),
];

const fn workload(
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    jobs: i64,
    spread: Option<i64>,
    cancels: bool,
) -> Workload {
    Workload { name, about, unit, jobs, spread, cancels }
}

struct Subject {
    name: &'static str,
    about: String,
    cancels: bool,
    run: fn(&mut Cell, &Workload),
}

fn subjects() -> Vec<Subject> {
    vec![
        subject::<mutex_heap::MutexHeapFamily>(),
        #[cfg(feature = "tokio")]
        subject::<tokio_queue::TokioFamily>(),
    ]
}

fn subject<F: Family>() -> Subject {
    Subject { name: F::NAME, about: F::about(), cancels: F::CANCELS, run: run::<F> }
}

/// A job is its number alone, or its bytes.
fn run<F: Family>(c: &mut Cell, w: &Workload) {
    if c.o.payload > 0 {
        run_with::<F, Bytes>(c, w);
    } else {
        run_with::<F, Bare>(c, w);
    }
}

fn run_with<F: Family, L: Load>(c: &mut Cell, w: &Workload) {
    c.grain = <F::Direct<L> as Direct<L>>::GRAIN;
    match w.name {
        "enqueue" => work_far::enqueue::<L, F::Direct<L>>(c),
        "cancel" => work_far::cancel::<L, F::Direct<L>>(c),
        "mixed" => work_far::mixed::<L, F::Direct<L>>(c),
        "memory" => work_far::memory::<L, F::Direct<L>>(c, F::CANCELS),
        "hold" => work_hold::hold::<L, F::Direct<L>>(c),
        "timeout" => work_hold::timeout::<L, F::Direct<L>>(c),
        "through" => work_through::through::<L, F::Queue<L>>(c),
        "slow" => work_through::slow::<L, F::Queue<L>>(c),
        "burst" => work_through::burst::<L, F::Queue<L>>(c),
        "lateness" => work_lateness::lateness::<L, F::Queue<L>>(c),
        _ => work_handoff::handoff::<L, F::Queue<L>>(c),
    }
}

/// Can this subject do what is asked for?
fn qualify(o: &Options, w: &Workload, s: &Subject) {
    let cancels = w.cancels || w.name == "mixed" && o.percent > 0;
    if cancels && !s.cancels {
        die(CANNOT, &format!("{} cannot cancel", s.name));
    }
    if w.cancels && o.producers > 1 {
        die(CANNOT, &format!("{} cancels in the task that owns the queue, alone", s.name));
    }
    if o.topics > 1 {
        die(CANNOT, &format!("{} has no topics", s.name));
    }
    if o.spin > 0 {
        die(CANNOT, &format!("{} cannot take early and spin", s.name));
    }
}

fn list() {
    for s in subjects() {
        let can = if s.cancels { "cancel virtual payload" } else { "virtual payload" };
        println!("{}\t{}\t{}", s.name, s.about, can);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        None => die(USAGE, "usage: bench_rust WORKLOAD --subject NAME [--option VALUE]..."),
        Some("--list") => return list(),
        Some("--list-workloads") => {
            for w in &WORKLOADS {
                println!("{}\t{}\t{}", w.name, w.about, w.unit);
            }
            return;
        }
        Some(_) => (),
    }
    clock::start();
    let Some(w) = WORKLOADS.iter().find(|w| w.name == words[0]) else {
        die(USAGE, &format!("no such workload: {}", words[0]));
    };
    let mut o = Options::parse(&words[1..]);
    let subjects = subjects();
    let Some(s) = subjects.iter().find(|s| s.name == o.subject) else {
        die(USAGE, &format!("no such subject: {}", o.subject));
    };
    o.jobs = o.jobs.or(Some(w.jobs));
    o.spread = o.spread.or(w.spread);
    qualify(&o, w, s);
    if o.pin {
        system::pin(&system::cores()[..1]);
    }
    // As in C's cells: in a process with one thread locks and memory of the system cost less.
    std::thread::spawn(|| loop {
        std::thread::park();
    });
    let mut c = Cell::new(o);
    (s.run)(&mut c, w);
    c.print(w.name, s.name, w.unit);
}
