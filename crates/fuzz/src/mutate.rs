//! Mutated inputs without coverage feedback, for the usual tests. The same seeds give the same
//! inputs.

/// Bytes of an input at most.
const MAX_BYTES: usize = 4_096;
/// Pieces of all formats that a change may put in.
const TOKENS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "\n",
    "\r\n",
    "{{",
    "}}",
    "|",
    "0",
    "-1",
    "1e999",
    "null",
    "\u{feff}",
    "\u{0}",
    "é",
    "=",
    ";",
    "%",
    "9223372036854775808",
];

/// An endless sequence of inputs, each made of a seed by a few changes.
pub struct Mutations<'s> {
    seeds: &'s [Vec<u8>],
    state: u64,
}

impl<'s> Mutations<'s> {
    /// `seeds` has one input at least.
    pub fn of(seeds: &'s [Vec<u8>]) -> Self {
        Self {
            seeds,
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns a number below `bound`, which is not 0, by xorshift64.
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % bound as u64).unwrap_or(0)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(8)).min(input.len());
        match self.below(6) {
            0 => input
                .splice(at..at, TOKENS[self.below(TOKENS.len())].bytes())
                .for_each(drop),
            1 if at < end => input.drain(at..end).for_each(drop),
            2 if at < input.len() => input[at] ^= 1 << self.below(8),
            3 if at < end => {
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece).for_each(drop);
            }
            4 => {
                let other = &self.seeds[self.below(self.seeds.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => input.insert(at, u8::try_from(self.below(256)).unwrap_or(0)),
        }
        input.truncate(MAX_BYTES);
    }
}

impl Iterator for Mutations<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.seeds[self.below(self.seeds.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        Some(input)
    }
}
