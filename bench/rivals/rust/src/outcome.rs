//! What came out of a cell: whether it is right, and the line.

use crate::cell::Cell;
use crate::queue::Load;
use crate::stream::mix;

pub const WRONG: i32 = 1;
pub const USAGE: i32 = 2;
pub const CANNOT: i32 = 3;

/// Ends the process with one of the statuses above.
pub fn die(status: i32, message: &str) -> ! {
    eprintln!("bench: {message}");
    std::process::exit(status);
}

/// Counts what came out.
#[derive(Default, Clone, Copy)]
pub struct Tally {
    pub count: u64,
    pub hash: u64,
    pub early: u64,
    pub garbled: u64,
}

impl Tally {
    pub fn add<L: Load>(&mut self, load: &L, payload: usize) {
        self.out(load.number());
        if !load.intact(payload) {
            self.garbled += 1;
        }
    }

    /// A job came out, or was cancelled.
    pub fn out(&mut self, number: u64) {
        self.count += 1;
        self.hash = self.hash.wrapping_add(mix(number));
    }

    pub fn sum(&mut self, other: &Tally) {
        self.count += other.count;
        self.hash = self.hash.wrapping_add(other.hash);
        self.early += other.early;
        self.garbled += other.garbled;
    }
}

impl Cell {
    /// Dies unless all numbers below `count` came out, once each, intact and not early.
    pub fn check(&self, count: i64) {
        let out = &self.out;
        let hash = (0..count as u64).fold(0u64, |sum, i| sum.wrapping_add(mix(i)));
        if out.early > 0 {
            die(WRONG, &format!("{} jobs were early", out.early));
        }
        if out.garbled > 0 {
            die(WRONG, &format!("{} jobs were not as they went in", out.garbled));
        }
        if out.count != count as u64 {
            die(WRONG, &format!("{} jobs came out, not {count}", out.count));
        }
        if out.hash != hash {
            die(WRONG, "jobs are lost and others doubled: the hash is wrong");
        }
    }

    pub fn say(&mut self, name: &'static str, value: f64) {
        self.more.push((name, value));
    }

    pub fn print(&self, workload: &str, subject: &str, unit: &str) {
        let more: Vec<String> =
            self.more.iter().map(|(name, value)| format!("\"{name}\":{value:.4}")).collect();
        println!(
            "{{\"workload\":\"{workload}\",\"subject\":\"{subject}\",\"value\":{:.6},\
             \"unit\":\"{unit}\",\"count\":{},\"hash\":\"{:016x}\",\"wall_s\":{:.6},\
             \"cpu_s\":{:.6},\"voluntary\":{},\"involuntary\":{},\"more\":{{{}}}}}",
            self.value,
            self.out.count,
            self.out.hash,
            self.wall,
            self.used.cpu,
            self.used.voluntary,
            self.used.involuntary,
            more.join(",")
        );
    }
}

/// Of sorted times, in us.
pub fn percentile(sorted: &[i64], percent: f64) -> f64 {
    let at = (percent / 100.0 * sorted.len() as f64) as usize;
    sorted[at.min(sorted.len() - 1)] as f64 / 1e3
}
