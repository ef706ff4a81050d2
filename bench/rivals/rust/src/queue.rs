//! The tables of operations that every subject fills in: one for threads, one for a thread alone.

/// What a subject carries: plain data, moved in and out.
pub trait Load: Send + 'static {
    fn make(number: u64, payload: usize) -> Self;
    fn number(&self) -> u64;
    fn intact(&self, payload: usize) -> bool;
}

/// The number alone.
pub struct Bare(u64);

impl Load for Bare {
    fn make(number: u64, _payload: usize) -> Bare {
        Bare(number)
    }

    fn number(&self) -> u64 {
        self.0
    }

    fn intact(&self, _payload: usize) -> bool {
        true
    }
}

/// The payload: the number, repeated.
pub struct Bytes(Box<[u8]>);

impl Load for Bytes {
    fn make(number: u64, payload: usize) -> Bytes {
        let mut bytes = vec![0; payload];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&number.to_le_bytes()[..part.len()]);
        }
        Bytes(bytes.into_boxed_slice())
    }

    fn number(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().unwrap())
    }

    fn intact(&self, payload: usize) -> bool {
        let end = payload - payload % 8;
        self.0.len() == payload && self.0[end - 8..end] == self.0[..8]
    }
}

pub struct Setup {
    pub jobs: usize, // most that will be held at a time: reserve and touch memory for them
    pub consumers: usize,
    pub payload: usize,
    pub lean: bool, // memory is measured: reserve nothing
}

/// Put in and taken by threads, on the real clock.
pub trait Queue<L: Load>: Sync {
    fn open(setup: &Setup) -> Self;

    /// None: due at once; the subject reads the clock if it needs it.
    fn put(&self, load: L, at: Option<i64>);

    /// Take, waiting, in a thread of its own; `got` is given each job and its deadline.  For each
    /// consumer there comes a job with the number [`END`], later than all others, and it ends.
    fn consume(&self, consumer: usize, got: impl FnMut(L, i64));
}

pub const END: u64 = u64::MAX;

/// Put in by threads.
pub trait Inlet<L: Load>: Clone + Send {
    fn put(&self, load: L, at: i64);
}

/// On a virtual clock, used by one thread.
pub trait Direct<L: Load> {
    type Handle: Clone;
    type Inlet: Inlet<L>;
    /// Deadlines are multiples of this.
    const GRAIN: i64;

    fn open(setup: &Setup) -> Self;
    fn put(&mut self, load: L, at: i64) -> Self::Handle;
    fn take(&mut self) -> Option<(L, i64)>;
    /// True: nobody will get it.
    fn cancel(&mut self, handle: Self::Handle) -> bool;
    fn turn(&mut self, to: i64);
    /// Something to put in with, for another thread.
    fn inlet(&self) -> Self::Inlet;
    /// Be there until so many have been put in by other threads.
    fn receive(&mut self, jobs: i64);
    /// Give memory back that is no longer used.
    fn trim(&mut self);
}

/// A subject, for all loads.
pub trait Family {
    const NAME: &'static str;
    const CANCELS: bool;
    type Queue<L: Load>: Queue<L>;
    type Direct<L: Load>: Direct<L>;

    fn about() -> String;
}
