//! The stream of jobs: what is random in them, by their number.

use crate::clock::SECOND;
use crate::options::{Options, Shape};

pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

pub struct Stream {
    seed: u64,
    shape: Shape,
    spread: i64,
    delays: Vec<i64>, // by number, where they are costly to make
}

const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

impl Stream {
    pub fn new(o: &Options, spread: i64, count: i64) -> Stream {
        let mut s = Stream { seed: o.seed, shape: o.shape, spread, delays: Vec::new() };
        if matches!(s.shape, Shape::Exponential | Shape::Heavy | Shape::Decades) {
            s.delays = (0..count as u64).map(|i| s.shaped(i)).collect();
        }
        s
    }

    fn random(&self, number: u64) -> u64 {
        mix(self.seed.wrapping_add(number.wrapping_mul(0x9e3779b97f4a7c15)))
    }

    pub fn delay(&self, number: u64) -> i64 {
        if !self.delays.is_empty() {
            return self.delays[number as usize];
        }
        self.shaped(number)
    }

    fn shaped(&self, number: u64) -> i64 {
        let r = self.random(number);
        let spread = self.spread as f64;
        let u = ((r >> 11) as f64 + 0.5) * UNIT;
        match self.shape {
            Shape::Uniform => ((r >> 11) as f64 * UNIT * spread) as i64,
            Shape::Exponential => self.clip(-u.ln() * spread / 8.0),
            Shape::Clustered => {
                let near = (self.spread / 10_000).max(1) as u64;
                (spread * (r & 15) as f64 / 16.0) as i64 + ((r >> 11) % near) as i64
            }
            Shape::Heavy => self.clip(spread / 10_000.0 * (u.powf(-1.0 / 1.1) - 1.0)),
            Shape::Sawtooth => self.spread - self.spread / 1000 * (number % 1000) as i64,
            Shape::Equal => self.spread / 2,
            Shape::Decades => self.clip(10f64.powf(9.0 * u) * spread / 1e9),
        }
    }

    fn clip(&self, ns: f64) -> i64 {
        if ns < self.spread as f64 {
            ns as i64
        } else {
            self.spread
        }
    }

    /// The order in which `n` things are cancelled.
    pub fn shuffled(&self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (2..=n as u64).rev() {
            let k = self.random(u64::MAX - i) % i;
            order.swap(i as usize - 1, k as usize);
        }
        order
    }
}

/// The spread with a mean delay of about a second.
pub fn mean_spread(shape: Shape) -> i64 {
    match shape {
        Shape::Exponential => 8 * SECOND,
        Shape::Heavy => 1661 * SECOND,
        Shape::Decades => SECOND * 207 / 10,
        _ => 2 * SECOND,
    }
}
