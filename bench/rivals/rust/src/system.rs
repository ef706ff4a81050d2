//! What is asked of the kernel: usage, memory, and on which cores threads run.

use crate::outcome::{die, CANNOT, WRONG};
use std::ffi::{c_int, c_long};

const CORES: usize = 1024;
const SCHED_IDLE: c_int = 5;

#[repr(C)]
#[derive(Default)]
struct Rusage {
    user: [c_long; 2], // s, us
    system: [c_long; 2],
    unused: [c_long; 12],
    voluntary: c_long,
    involuntary: c_long,
}

type CpuSet = [u64; CORES / 64];

extern "C" {
    fn getrusage(who: c_int, usage: *mut Rusage) -> c_int;
    fn sched_getaffinity(thread: c_int, size: usize, set: *mut CpuSet) -> c_int;
    fn sched_setaffinity(thread: c_int, size: usize, set: *const CpuSet) -> c_int;
    fn sched_setscheduler(thread: c_int, policy: c_int, param: *const c_int) -> c_int;
}

/// What the process has used, or the difference of two.
#[derive(Default, Clone, Copy)]
pub struct Usage {
    pub cpu: f64, // s
    pub voluntary: i64,
    pub involuntary: i64,
}

pub fn usage() -> Usage {
    let mut r = Rusage::default();
    // SAFETY: the structure is as large as that of Linux, and ours.
    if unsafe { getrusage(0, &mut r) } != 0 {
        die(WRONG, "getrusage");
    }
    let seconds = |t: [c_long; 2]| t[0] as f64 + t[1] as f64 / 1e6;
    Usage {
        cpu: seconds(r.user) + seconds(r.system),
        voluntary: r.voluntary,
        involuntary: r.involuntary,
    }
}

impl Usage {
    pub fn add_since(&mut self, before: Usage) {
        let now = usage();
        self.cpu += now.cpu - before.cpu;
        self.voluntary += now.voluntary - before.voluntary;
        self.involuntary += now.involuntary - before.involuntary;
    }
}

/// Resident memory, in bytes.
pub fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    match line.split_whitespace().nth(1).map(str::parse::<i64>) {
        Some(Ok(kilobytes)) => kilobytes * 1024,
        _ => die(WRONG, "cannot read /proc/self/status"),
    }
}

/// The cores that the calling thread may run on.
pub fn cores() -> Vec<usize> {
    let mut set: CpuSet = [0; CORES / 64];
    // SAFETY: the size is that of the set.
    if unsafe { sched_getaffinity(0, size_of::<CpuSet>(), &mut set) } < 0 {
        die(CANNOT, "sched_getaffinity");
    }
    (0..CORES).filter(|core| set[core / 64] & (1 << (core % 64)) != 0).collect()
}

/// Let the calling thread, and those it starts, run on these cores only.
pub fn pin(cores: &[usize]) {
    let mut set: CpuSet = [0; CORES / 64];
    for core in cores {
        set[core / 64] |= 1 << (core % 64);
    }
    // SAFETY: the size is that of the set.
    if unsafe { sched_setaffinity(0, size_of::<CpuSet>(), &set) } != 0 {
        die(CANNOT, "a thread cannot be pinned");
    }
}

/// From now on the calling thread runs only where nobody else has work.
pub fn give_way() {
    // SAFETY: the parameter is one number, of priority.
    if unsafe { sched_setscheduler(0, SCHED_IDLE, &0) } != 0 {
        die(CANNOT, "no thread of policy SCHED_IDLE to be had");
    }
}
