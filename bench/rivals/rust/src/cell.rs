//! What the workloads share.

use crate::clock::{self, real, HOUR};
use crate::options::Options;
use crate::outcome::{die, Tally, WRONG};
use crate::queue::{Direct, Load, Queue, Setup, END};
use crate::stream::Stream;
use crate::system::{usage, Usage};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::Barrier;

pub struct Cell {
    pub o: Options,
    stream: Option<Stream>,
    pub count: i64, // jobs of the stream that take part
    pub base: i64,  // a job's deadline is this plus its delay
    pub grain: i64, // deadlines on a virtual clock are multiples of it

    // The result.
    pub value: f64,
    pub wall: f64, // s
    pub used: Usage,
    pub out: Tally,
    pub more: Vec<(&'static str, f64)>,
}

impl Cell {
    pub fn new(o: Options) -> Cell {
        Cell {
            o,
            stream: None,
            count: 0,
            base: 0,
            grain: 1,
            value: 0.0,
            wall: 0.0,
            used: Usage::default(),
            out: Tally::default(),
            more: Vec::new(),
        }
    }

    pub fn jobs(&self) -> i64 {
        self.o.jobs.unwrap_or_default()
    }

    pub fn spread(&self) -> i64 {
        self.o.spread.unwrap_or_default()
    }

    /// So many jobs of the stream take part.
    pub fn prepare(&mut self, count: i64) {
        self.count = count;
        self.stream = Some(Stream::new(&self.o, self.spread(), count));
    }

    fn setup(&self, held: i64, lean: bool) -> Setup {
        let consumers = self.o.consumers;
        Setup { jobs: held as usize + consumers, consumers, payload: self.o.payload, lean }
    }

    /// A queue for so many jobs at a time, on a virtual clock; jobs are an hour away from now.
    pub fn open_direct<L: Load, D: Direct<L>>(&mut self, held: i64, lean: bool) -> D {
        clock::make_virtual();
        self.base = clock::START + HOUR;
        D::open(&self.setup(held, lean))
    }

    pub fn open_queue<L: Load, Q: Queue<L>>(&self, held: i64) -> Q {
        Q::open(&self.setup(held, false))
    }

    pub fn stream(&self) -> &Stream {
        self.stream.as_ref().expect("prepared")
    }

    pub fn delay(&self, number: i64) -> i64 {
        self.stream().delay(number as u64)
    }

    pub fn at(&self, number: i64) -> i64 {
        self.base + self.delay(number)
    }

    /// Rounded up to the subject's unit of time.
    pub fn grained(&self, at: i64) -> i64 {
        if self.grain > 1 {
            (at + self.grain - 1) / self.grain * self.grain
        } else {
            at
        }
    }

    pub fn at_grained(&self, number: i64) -> i64 {
        self.grained(self.at(number))
    }

    pub fn load<L: Load>(&self, number: i64) -> L {
        L::make(number as u64, self.o.payload)
    }

    /// In the calling thread; it may be done several times.
    pub fn measure<R>(&mut self, work: impl FnOnce(&mut Cell) -> R) -> R {
        let before = usage();
        let from = real();
        let result = work(self);
        self.wall += (real() - from) as f64 / 1e9;
        self.used.add_since(before);
        result
    }

    pub fn millions(&self, n: i64) -> f64 {
        n as f64 / self.wall / 1e6
    }

    /// Turn the clock to where everything is due, and take it all, in order, none early.  Dated:
    /// deadlines must be those of jobs far away.
    pub fn drain<L: Load, D: Direct<L>>(&mut self, q: &mut D, dated: bool, gone: &[bool]) {
        let mut last = 0;
        while let Some((load, at)) = q.take() {
            let number = load.number();
            if number >= self.count as u64 {
                die(WRONG, &format!("there is no job {number}"));
            }
            if gone.get(number as usize) == Some(&true) {
                die(WRONG, &format!("job {number} came although it was cancelled"));
            }
            if dated && at != self.at_grained(number as i64) {
                die(WRONG, &format!("job {number} has not the deadline it was given"));
            }
            if at < last {
                die(WRONG, &format!("job {number} came after one with a later deadline"));
            }
            last = at;
            self.out.early += u64::from(at > clock::now());
            self.out.add(&load, self.o.payload);
        }
    }

    pub fn turn_past_all<L: Load, D: Direct<L>>(&self, q: &mut D) {
        q.turn(self.base + self.spread() + clock::SECOND);
    }
}

pub type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Run all of these in threads, and at the same time `alongside` in the calling one.  The time from
/// the first start to the last end, in s, and what was used.
pub fn measure_threads(bodies: Vec<Body>, alongside: impl FnOnce()) -> (f64, Usage) {
    let barrier = Barrier::new(bodies.len() + 1);
    let (first, last) = (AtomicI64::new(i64::MAX), AtomicI64::new(0));
    let mut used = Usage::default();

    std::thread::scope(|scope| {
        for body in bodies {
            scope.spawn(|| {
                barrier.wait(); // all are there
                barrier.wait(); // the usage before has been taken
                first.fetch_min(real(), Ordering::Relaxed);
                body();
                last.fetch_max(real(), Ordering::Relaxed);
                barrier.wait(); // the usage after has been taken when all may leave
                barrier.wait();
            });
        }
        barrier.wait();
        let before = usage();
        barrier.wait();
        alongside();
        last.fetch_max(real(), Ordering::Relaxed);
        barrier.wait();
        used.add_since(before);
        barrier.wait();
    });
    ((last.into_inner() - first.into_inner()) as f64 / 1e9, used)
}

/// Of a producer, on cache lines of its own: the latest deadline it has put in.
#[derive(Default)]
#[repr(align(128))]
pub struct Latest(pub AtomicI64);

/// Who has put in everything; the last of them puts in an end for each consumer.
pub struct Finish {
    finished: AtomicUsize,
    pub first: AtomicI64, // start of the producers
    pub last: AtomicI64,  // their end
}

impl Default for Finish {
    fn default() -> Self {
        let first = AtomicI64::new(i64::MAX);
        Finish { finished: AtomicUsize::new(0), first, last: AtomicI64::new(0) }
    }
}

impl Finish {
    pub fn producer<L: Load, Q: Queue<L>>(&self, c: &Cell, q: &Q, latest: &[Latest]) {
        if self.finished.fetch_add(1, Ordering::AcqRel) + 1 < latest.len() {
            return;
        }
        self.last.store(real(), Ordering::Relaxed);
        let most = latest.iter().map(|l| l.0.load(Ordering::Relaxed)).max().unwrap_or(0);
        put_ends(c, q, most.max(real()));
    }
}

/// An end for each consumer, later than this.
pub fn put_ends<L: Load, Q: Queue<L>>(c: &Cell, q: &Q, at: i64) {
    for _ in 0..c.o.consumers {
        q.put(L::make(END, c.o.payload), Some(at + 1));
    }
}

/// What a consumer counts, and shows to others on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Counter {
    pub taken: AtomicU64, // stored after last
    pub last: AtomicI64,
}
