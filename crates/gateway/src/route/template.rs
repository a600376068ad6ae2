//! Path templates: literal segments and `{field}` variables of one segment each.

use prost_reflect::{FieldDescriptor, MessageDescriptor};

/// The field that a path variable fills.
pub(crate) type Variable = FieldDescriptor;

#[derive(Debug)]
pub(crate) struct Template {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug)]
enum Segment {
    Literal(String),
    Variable(Variable),
}

impl Template {
    /// Parses a template. Every variable must name a field of `input`.
    pub(super) fn parse(text: &str, input: &MessageDescriptor) -> Result<Self, String> {
        let path = text
            .strip_prefix('/')
            .ok_or_else(|| format!("path {text:?} does not begin with a slash"))?;
        let segment = |segment: &str| {
            let Some(name) = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) else {
                let plain = !segment.is_empty() && !segment.contains(['{', '}', '*', ':', '%']);
                return plain
                    .then(|| Segment::Literal(segment.to_owned()))
                    .ok_or_else(|| format!("segment {segment:?} of {text:?} is not supported"));
            };
            let field = input
                .get_field_by_name(name)
                .filter(|f| !f.is_list() && f.kind().as_message().is_none());
            field
                .map(Segment::Variable)
                .ok_or_else(|| format!("{} has no plain field {name:?}", input.full_name()))
        };
        Ok(Self {
            text: text.to_owned(),
            segments: path.split('/').map(segment).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a key that sorts literals before variables, from the left.
    pub(super) fn precedence(&self) -> Vec<bool> {
        self.segments
            .iter()
            .map(|s| matches!(s, Segment::Variable(_)))
            .collect()
    }

    /// Returns whether decoded segments match. A variable matches no empty segment.
    pub(super) fn matches(&self, segments: &[String]) -> bool {
        let matches = |(ours, theirs): (&Segment, &String)| match ours {
            Segment::Literal(literal) => literal == theirs,
            Segment::Variable(_) => !theirs.is_empty(),
        };
        self.segments.len() == segments.len() && self.segments.iter().zip(segments).all(matches)
    }

    /// Returns whether both match the same paths, whatever the variables are called.
    pub(super) fn same_shape(&self, other: &Self) -> bool {
        let same = |pair: (&Segment, &Segment)| match pair {
            (Segment::Literal(a), Segment::Literal(b)) => a == b,
            (Segment::Variable(_), Segment::Variable(_)) => true,
            (Segment::Literal(_), Segment::Variable(_))
            | (Segment::Variable(_), Segment::Literal(_)) => false,
        };
        self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(same)
    }

    /// Returns the values of the variables in a path that matches.
    pub(super) fn variables(&self, segments: &[String]) -> Vec<(Variable, String)> {
        let variable = |(ours, theirs): (&Segment, &String)| match ours {
            Segment::Literal(_) => None,
            Segment::Variable(field) => Some((field.clone(), theirs.clone())),
        };
        self.segments
            .iter()
            .zip(segments)
            .filter_map(variable)
            .collect()
    }
}
