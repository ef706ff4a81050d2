//! The options of the command line.

use crate::clock::{HOUR, SECOND};
use crate::outcome::{die, USAGE};

#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    Uniform,
    Exponential,
    Clustered,
    Heavy,
    Sawtooth,
    Equal,
    Decades,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    Asleep,
    Same,
    Awake,
}

const SHAPES: [(&str, Shape); 7] = [
    ("uniform", Shape::Uniform),
    ("exponential", Shape::Exponential),
    ("clustered", Shape::Clustered),
    ("heavy", Shape::Heavy),
    ("sawtooth", Shape::Sawtooth),
    ("equal", Shape::Equal),
    ("decades", Shape::Decades),
];
const PLACES: [(&str, Place); 3] =
    [("asleep", Place::Asleep), ("same", Place::Same), ("awake", Place::Awake)];

pub struct Options {
    pub subject: String,
    pub jobs: Option<i64>, // None: the default of the workload
    pub producers: usize,
    pub consumers: usize,
    pub shape: Shape,
    pub spread: Option<i64>, // ns
    pub payload: usize,
    pub topics: i64,
    pub seed: u64,
    pub pin: bool,
    pub live: i64,
    pub gap: i64, // ns
    pub place: Place,
    pub percent: usize,
    pub think: i64, // ns
    pub spin: i64,  // ns
}

fn number(name: &str, value: &str, least: i64, most: i64) -> i64 {
    match value.parse() {
        Ok(n) if (least..=most).contains(&n) => n,
        _ => die(USAGE, &format!("{name}: a number between {least} and {most}, not {value}")),
    }
}

fn choice<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> T {
    match words.iter().find(|(word, _)| *word == value) {
        Some((_, meaning)) => *meaning,
        None => die(USAGE, &format!("{name}: not known: {value}")),
    }
}

impl Options {
    pub fn parse(words: &[String]) -> Options {
        let mut o = Options {
            subject: String::new(),
            jobs: None,
            producers: 1,
            consumers: 1,
            shape: Shape::Uniform,
            spread: None,
            payload: 0,
            topics: 1,
            seed: 42,
            pin: false,
            live: 100_000,
            gap: 1_000_000,
            place: Place::Asleep,
            percent: 50,
            think: 1_000_000,
            spin: 0,
        };
        let mut rest = words.iter();
        while let Some(name) = rest.next() {
            if name == "--pin" {
                o.pin = true;
                continue;
            }
            match rest.next() {
                Some(value) => o.set(name, value),
                None => die(USAGE, &format!("{name}: no value")),
            }
        }
        if o.subject.is_empty() {
            die(USAGE, "which --subject?");
        }
        if (1..8).contains(&o.payload) {
            die(USAGE, "--payload: 0, or 8 and more");
        }
        o
    }

    fn set(&mut self, name: &str, value: &str) {
        let n = |least, most| number(name, value, least, most);
        let most = i64::from(u32::MAX / 2);
        match name {
            "--subject" => self.subject = value.to_string(),
            "--jobs" => self.jobs = Some(n(1, most)),
            "--producers" => self.producers = n(1, 512) as usize,
            "--consumers" => self.consumers = n(1, 512) as usize,
            // No queue here knows batches: one by one.
            "--batch" => drop(n(0, 4096)),
            "--shape" => self.shape = choice(name, value, &SHAPES),
            "--spread-ns" => self.spread = Some(n(0, 1000 * HOUR)),
            "--payload" => self.payload = n(0, 4096) as usize,
            "--topics" => self.topics = n(1, 60_000),
            "--seed" => self.seed = n(0, i64::MAX) as u64,
            "--live" => self.live = n(1, most),
            "--gap-ns" => self.gap = n(1, 60 * SECOND),
            "--where" => self.place = choice(name, value, &PLACES),
            "--percent" => self.percent = n(0, 100) as usize,
            "--think-ns" => self.think = n(0, 60 * SECOND),
            "--spin-ns" => self.spin = n(0, SECOND),
            _ => die(USAGE, &format!("no such option: {name}")),
        }
    }
}
