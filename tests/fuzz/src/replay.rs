//! Runs the committed corpus without a fuzzer: every file unchanged, and damaged in ways that are
//! the same every time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use super::input::next_random;

/// Runs a target over its corpus, and over `mutations` inputs made from it.
pub(crate) fn replay(target: &str, mutations: u64, run: fn(&[u8]) -> usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    let inputs: Vec<_> = files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
    assert!(inputs.len() >= 10, "{} holds {} files", folder.display(), inputs.len());
    for (input, file) in inputs.iter().zip(&files) {
        attempt(run, input, &file.display().to_string());
    }
    let mut random = Random(1);
    for number in 0..mutations {
        attempt(run, &mutated(&inputs, &mut random), &format!("mutation {number}"));
    }
}

/// Runs a target. If it panics, prints the input.
fn attempt(run: fn(&[u8]) -> usize, input: &[u8], name: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        eprintln!("{name}: b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = next_random(self.0);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }
}

/// An input with a few bytes changed, added, removed, or replaced by those of another input.
fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(4) {
        let place = random.below(input.len());
        let end = input.len().min(place + random.below(9));
        match random.below(4) {
            0 => drop(input.drain(place..end)),
            1 => drop(
                input.splice(place..place, (0..=random.below(4)).map(|_| random.byte()).collect::<Vec<_>>()),
            ),
            2 => {
                let other = &inputs[random.below(inputs.len())];
                let start = random.below(other.len());
                let end = other.len().min(start + random.below(64));
                drop(input.splice(place..place, other[start..end].iter().copied()));
            }
            _ => input.iter_mut().skip(place).take(1).for_each(|byte| *byte = random.byte()),
        }
    }
    input
}
