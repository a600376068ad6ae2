//! Keywords of types, options, numbers and strings.

use kanat_json::Decimal;

use super::{At, Compiler, Formats, MAX_PATTERN_MEMORY};
use crate::Error;
use crate::document::{Kind, Value};
use crate::draft::Draft;
use crate::format::Format;
use crate::node::{NumberRules, Options, StringRules, Types};
use crate::number::Limit;
use crate::pattern::Pattern;
use crate::resources::TOO_MUCH_WORK;

/// Steps of compiling any pattern, besides those for its size.
const STEPS_PER_PATTERN: u64 = 10_000;

impl Compiler {
    pub(super) fn types(&self, at: &At<'_>) -> Result<Option<Types>, Error> {
        let Some(value) = at.get("type") else {
            return Ok(None);
        };
        let mut types = Types::default();
        types.as_written = at.draft == Draft::Four;
        let names: Vec<Value<'_>> = if value.kind() == Kind::List {
            value.items().collect()
        } else {
            vec![value]
        };
        for name in names {
            if !name.as_str().is_some_and(|name| types.add(&name)) {
                let message = format!("is no type: there is {}", Types::NAMES.join(", "));
                return Err(self.resources.error(at.of(name), message));
            }
        }
        Ok(Some(types))
    }

    pub(super) fn options(&self, at: &At<'_>) -> Result<Vec<Options>, Error> {
        let mut options = Vec::new();
        if let Some(list) = at.get("enum") {
            if list.kind() != Kind::List {
                return Err(self.resources.error(at.of(list), "must be a list"));
            }
            options.push(Options::new(list.items()));
        }
        if let Some(value) = at.since(Draft::Six, "const") {
            options.push(Options::new(std::iter::once(value)));
        }
        Ok(options)
    }

    pub(super) fn number_rules(&self, at: &At<'_>) -> Result<Option<Box<NumberRules>>, Error> {
        let mut rules = NumberRules {
            minimum: self.limit(at, "minimum")?,
            maximum: self.limit(at, "maximum")?,
            ..NumberRules::default()
        };
        if at.draft == Draft::Four {
            let is_true =
                |keyword: &str| at.get(keyword).and_then(Value::as_bool).unwrap_or_default();
            if is_true("exclusiveMinimum") {
                rules.exclusive_minimum = rules.minimum.take();
            }
            if is_true("exclusiveMaximum") {
                rules.exclusive_maximum = rules.maximum.take();
            }
        } else {
            rules.exclusive_minimum = self.limit(at, "exclusiveMinimum")?;
            rules.exclusive_maximum = self.limit(at, "exclusiveMaximum")?;
        }
        if let Some(value) = at.get("multipleOf") {
            let divisor = self.limit(at, "multipleOf")?.filter(Limit::is_positive);
            let divisor =
                divisor.ok_or_else(|| self.resources.error(at.of(value), "must be more than 0"))?;
            if divisor.digit_count() > Decimal::MAX_DIVISOR_DIGITS {
                let message = format!("has more than {} digits", Decimal::MAX_DIVISOR_DIGITS);
                return Err(self.resources.error(at.of(value), message));
            }
            rules.multiple_of = Some(divisor);
        }
        let limits = [
            &rules.minimum,
            &rules.exclusive_minimum,
            &rules.maximum,
            &rules.exclusive_maximum,
            &rules.multiple_of,
        ];
        let asks = limits.iter().any(|limit| limit.is_some());
        Ok(asks.then(|| Box::new(rules)))
    }

    pub(super) fn string_rules(&mut self, at: &At<'_>) -> Result<Option<Box<StringRules>>, Error> {
        let mut rules = StringRules {
            min_length: self.count(at, "minLength")?,
            max_length: self.count(at, "maxLength")?,
            ..StringRules::default()
        };
        if let Some(value) = at.get("pattern") {
            let text = value
                .as_str()
                .ok_or_else(|| self.resources.error(at.of(value), "must be a string"))?;
            rules.pattern = Some(self.pattern(at, value, &text)?);
        }
        if self.formats == Formats::Asserted {
            let name = at.get("format").and_then(Value::as_str);
            rules.format = name.and_then(|name| Format::named(at.draft, &name));
        }
        let asks = rules.min_length.is_some()
            || rules.max_length.is_some()
            || rules.pattern.is_some()
            || rules.format.is_some();
        Ok(asks.then(|| Box::new(rules)))
    }

    /// Compiles a pattern that stands in `value`.
    pub(super) fn pattern(
        &mut self,
        at: &At<'_>,
        value: Value<'_>,
        text: &str,
    ) -> Result<Pattern, Error> {
        let pattern =
            Pattern::new(text).map_err(|message| self.resources.error(at.of(value), message))?;
        if !self
            .resources
            .budget
            .spend(STEPS_PER_PATTERN + pattern.memory() as u64)
        {
            return Err(self.resources.error(at.of(value), TOO_MUCH_WORK));
        }
        self.pattern_memory += pattern.memory();
        if self.pattern_memory > MAX_PATTERN_MEMORY {
            let message = format!(
                "all patterns together need more than {} MiB",
                MAX_PATTERN_MEMORY / 1024 / 1024
            );
            return Err(self.resources.error(at.of(value), message));
        }
        Ok(pattern)
    }

    fn limit(&self, at: &At<'_>, keyword: &str) -> Result<Option<Limit>, Error> {
        let Some(value) = at.get(keyword) else {
            return Ok(None);
        };
        match value.as_number() {
            Some(number) => Ok(Some(number.limit())),
            None => Err(self.resources.error(at.of(value), "must be a number")),
        }
    }

    /// Reads a keyword whose value is a count.
    pub(super) fn count(&self, at: &At<'_>, keyword: &str) -> Result<Option<u64>, Error> {
        let Some(value) = at.get(keyword) else {
            return Ok(None);
        };
        let count = value
            .as_number()
            .and_then(|number| number.decimal().to_count());
        count.map(Some).ok_or_else(|| {
            self.resources
                .error(at.of(value), "must be an integer of at least 0")
        })
    }
}
