//! Sums of many numbers.

use kanat_json::Decimal;

use super::{Operand, TransformResult, operators, parse};
use crate::value::Value;
use crate::{Effort, EvaluationError};

/// Steps charged for each column of a sum. Numbers may stand far apart.
const COLUMN: u64 = 10;

/// Numbers that are added at once.
const CHUNK: usize = 1024;

/// Exact sum of numbers and numeric strings.
pub(in crate::transform) struct Total<'e> {
    numbers: Vec<Decimal>,
    /// Number of values so far, those that are missing too: the place of the next one.
    count: usize,
    effort: &'e Effort,
}

impl<'e> Total<'e> {
    pub fn new(effort: &'e Effort) -> Self {
        Self {
            numbers: Vec::new(),
            count: 0,
            effort,
        }
    }

    /// Adds a value. Null and undefined count nothing.
    pub fn add(&mut self, value: &Value) -> Result<(), EvaluationError> {
        if value.is_missing() {
            self.count += 1;
            return Ok(());
        }
        self.effort.read(value.size());
        let number = parse(value).map_err(|mut error| {
            error.message = format!("item {} of the list: {}", self.count, error.message);
            error
        })?;
        self.add_number(number)
    }

    pub fn add_operand(&mut self, operand: Operand<'_>) -> Result<(), EvaluationError> {
        match operand {
            Operand::Value(value) => self.add(&value),
            Operand::Number(number) => {
                self.effort.read(number.digit_count());
                self.add_number(number)
            }
        }
    }

    fn add_number(&mut self, number: Decimal) -> Result<(), EvaluationError> {
        self.count += 1;
        self.numbers.push(number);
        if self.numbers.len() == CHUNK {
            self.collapse()?;
        }
        Ok(())
    }

    pub fn into_value<'s>(mut self) -> TransformResult<'s> {
        self.collapse()?;
        let sum = self.numbers.pop().unwrap_or_default();
        let sum = operators::bounded(sum).map_err(EvaluationError::mapping)?;
        Ok(Value::number(sum.plain()))
    }

    /// Replaces the numbers by their sum.
    fn collapse(&mut self) -> Result<(), EvaluationError> {
        let columns = Decimal::columns(self.numbers.iter()).count();
        self.effort.spend(COLUMN * columns as u64);
        self.effort.check()?;
        let sum = Decimal::sum(&self.numbers);
        self.numbers.clear();
        self.numbers.push(sum);
        Ok(())
    }
}
