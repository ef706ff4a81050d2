//! The delay queue of tokio-util, in a runtime of one thread.  Its unit of time is 1 ms.
//!
//! Between threads: the task that owns the queue is fed by a channel, and is the first consumer
//! itself; if there are more, it gives them jobs in turn, each through a channel of its own.
//!
//! Alone: the queue is called directly, as that task would, and tokio's clock stands until it is
//! turned.

use crate::clock;
use crate::outcome::{die, WRONG};
use crate::queue::{Direct, Family, Inlet, Load, Queue, Setup, END};
use std::future::poll_fn;
use std::sync::{mpsc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tokio_util::time::{delay_queue::Key, DelayQueue};

const VERSIONS: &str = include_str!("../Cargo.lock");

pub struct TokioFamily;

impl Family for TokioFamily {
    const NAME: &'static str = "rust-tokio";
    const CANCELS: bool = true;
    type Queue<L: Load> = TokioQueue<L>;
    type Direct<L: Load> = TokioDirect<L>;

    fn about() -> String {
        let named = "name = \"tokio-util\"\nversion = \"";
        let version = VERSIONS.split(named).nth(1).and_then(|rest| rest.split('"').next());
        format!("DelayQueue of tokio-util {}, in one task", version.unwrap_or("?"))
    }
}

fn runtime(stands: bool) -> Runtime {
    match Builder::new_current_thread().enable_time().start_paused(stands).build() {
        Ok(runtime) => runtime,
        Err(error) => die(WRONG, &format!("no runtime: {error}")),
    }
}

/// Where the bench's clock meets tokio's.
#[derive(Clone, Copy)]
pub struct Meeting {
    instant: Instant,
    ns: i64,
}

impl Meeting {
    fn instant(&self, at: i64) -> Instant {
        if at >= self.ns {
            self.instant + Duration::from_nanos((at - self.ns) as u64)
        } else {
            self.instant - Duration::from_nanos((self.ns - at) as u64)
        }
    }

    fn ns(&self, instant: Instant) -> i64 {
        self.ns + (instant - self.instant).as_nanos() as i64
    }
}

/// What is put in, for the task.
type Command<L> = (L, Instant);
/// What is handed on, with its deadline.
type Due<L> = (L, i64);

/// Something that is taken away by the one thread that uses it.
struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    fn new(thing: T) -> Self {
        Slot(Mutex::new(Some(thing)))
    }

    fn take(&self) -> T {
        self.0.lock().unwrap().take().expect("each consumer is one thread")
    }
}

pub struct TokioQueue<L> {
    sender: UnboundedSender<Command<L>>,
    receiver: Slot<UnboundedReceiver<Command<L>>>,
    senders: Slot<Vec<mpsc::Sender<Due<L>>>>, // to the other consumers
    receivers: Vec<Slot<mpsc::Receiver<Due<L>>>>,
    room: usize,
    meeting: Meeting,
}

impl<L: Load> TokioQueue<L> {
    /// Until so many ends have come, and all the rest: of what is due in the same millisecond, or
    /// overdue, the queue hands out the last first.
    async fn own(&self, mut ends: usize, mut hand_on: impl FnMut(L, i64)) {
        let mut commands = self.receiver.take();
        let mut queue = DelayQueue::with_capacity(self.room);

        while ends > 0 || !queue.is_empty() {
            tokio::select! {
                Some((load, when)) = commands.recv() => {
                    queue.insert_at(load, when);
                }
                Some(expired) = poll_fn(|cx| queue.poll_expired(cx)), if !queue.is_empty() => {
                    let at = self.meeting.ns(expired.deadline());
                    let load: L = expired.into_inner();
                    if load.number() == END {
                        ends -= 1;
                    } else {
                        hand_on(load, at);
                    }
                }
            }
        }
    }
}

impl<L: Load> Queue<L> for TokioQueue<L> {
    fn open(setup: &Setup) -> Self {
        let (sender, receiver) = unbounded_channel();
        let others = (1..setup.consumers).map(|_| mpsc::channel());
        let (senders, receivers) = others.map(|(s, r)| (s, Slot::new(r))).unzip();
        TokioQueue {
            sender,
            receiver: Slot::new(receiver),
            senders: Slot::new(senders),
            receivers,
            room: setup.jobs,
            meeting: Meeting { instant: Instant::from_std(clock::epoch()), ns: 0 },
        }
    }

    fn put(&self, load: L, at: Option<i64>) {
        let when = at.map_or_else(Instant::now, |at| self.meeting.instant(at));
        if self.sender.send((load, when)).is_err() {
            die(WRONG, "rust-tokio: the task has gone");
        }
    }

    fn consume(&self, consumer: usize, mut got: impl FnMut(L, i64)) {
        if consumer > 0 {
            let jobs = self.receivers[consumer - 1].take();
            jobs.into_iter().for_each(|(load, at)| got(load, at));
            return;
        }
        let others = self.senders.take(); // they end when this has gone
        let mut next = 0;
        let hand_on = |load: L, at| {
            if next == others.len() {
                got(load, at);
                next = 0;
            } else {
                others[next].send((load, at)).expect("consumers stay until the end");
                next += 1;
            }
        };
        runtime(false).block_on(self.own(others.len() + 1, hand_on));
    }
}

impl<L: Load> Inlet<L> for (UnboundedSender<Command<L>>, Meeting) {
    fn put(&self, load: L, at: i64) {
        if self.0.send((load, self.1.instant(at))).is_err() {
            die(WRONG, "rust-tokio: the queue has gone");
        }
    }
}

pub struct TokioDirect<L> {
    queue: DelayQueue<L>,
    meeting: Meeting,
    sender: UnboundedSender<Command<L>>,
    receiver: UnboundedReceiver<Command<L>>,
    runtime: &'static Runtime,
    _inside: EnterGuard<'static>,
}

impl<L: Load> Direct<L> for TokioDirect<L> {
    type Handle = Key;
    type Inlet = (UnboundedSender<Command<L>>, Meeting);
    const GRAIN: i64 = 1_000_000;

    fn open(setup: &Setup) -> Self {
        let runtime: &'static Runtime = Box::leak(Box::new(runtime(true)));
        let inside = runtime.enter();
        let mut queue = DelayQueue::new();
        if !setup.lean {
            queue.reserve(setup.jobs);
            for _ in 0..setup.jobs {
                queue.insert(L::make(0, setup.payload.min(8)), Duration::from_secs(1));
            }
            queue.clear();
        }
        let meeting = Meeting { instant: Instant::now(), ns: clock::now() };
        let (sender, receiver) = unbounded_channel();
        TokioDirect { queue, meeting, sender, receiver, runtime, _inside: inside }
    }

    fn put(&mut self, load: L, at: i64) -> Key {
        self.queue.insert_at(load, self.meeting.instant(at))
    }

    fn take(&mut self) -> Option<(L, i64)> {
        match self.queue.poll_expired(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(expired)) => {
                let at = self.meeting.ns(expired.deadline());
                Some((expired.into_inner(), at))
            }
            _ => None,
        }
    }

    fn cancel(&mut self, key: Key) -> bool {
        self.queue.try_remove(&key).is_some()
    }

    fn turn(&mut self, to: i64) {
        let by = to - clock::now();
        clock::turn(to);
        if by > 0 {
            self.runtime.block_on(tokio::time::advance(Duration::from_nanos(by as u64)));
        }
    }

    fn inlet(&self) -> Self::Inlet {
        (self.sender.clone(), self.meeting)
    }

    fn receive(&mut self, jobs: i64) {
        self.runtime.block_on(async {
            tokio::time::resume(); // a clock that stands would jump while the task waits
            for _ in 0..jobs {
                if let Some((load, when)) = self.receiver.recv().await {
                    self.queue.insert_at(load, when);
                }
            }
            tokio::time::pause();
        });
    }

    fn trim(&mut self) {
        self.queue.shrink_to_fit();
    }
}
