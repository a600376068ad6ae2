//! Applicators: schemas that apply to the same value as the one that they stand in.

use super::evaluated::EvaluatedSet;
use super::{Fits, Run, need};
use crate::document::Value;
use crate::node::{Applicator, Id};

impl Run<'_> {
    pub(super) fn applied(
        &mut self,
        applied: &Applicator,
        value: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        match applied {
            Applicator::All(schemas) => {
                let mut valid = true;
                for schema in schemas {
                    need!(
                        self,
                        valid,
                        self.visit(*schema, value, track.as_deref_mut())
                    );
                }
                valid
            }
            Applicator::Any(schemas) => self.any(schemas, value, track),
            Applicator::One(schemas) => self.one(schemas, value, track),
            Applicator::Not(schema) => {
                let fits = self.quietly(|run| run.visit(*schema, value, None));
                !fits || self.fail(value, || "has a form that is ruled out here".to_owned())
            }
            Applicator::If {
                test,
                then,
                otherwise,
            } => {
                let fits = self.attempt(*test, value, track.as_deref_mut());
                match if fits { then } else { otherwise } {
                    Some(schema) => self.visit(*schema, value, track),
                    None => true,
                }
            }
            Applicator::Reference(schema) => self.visit(*schema, value, track),
            Applicator::Dynamic { target, name } => {
                let dynamic = &self.program.dynamic;
                let found = self
                    .scope
                    .iter()
                    .find_map(|resource| dynamic.get(&(*resource, name.clone())));
                self.visit(found.copied().unwrap_or(*target), value, track)
            }
            Applicator::Recursive { target } => {
                let recursive = &self.program.recursive;
                let found = self
                    .scope
                    .iter()
                    .find_map(|resource| recursive.get(resource));
                self.visit(found.copied().unwrap_or(*target), value, track)
            }
        }
    }

    fn any(
        &mut self,
        schemas: &[Id],
        value: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut fits = false;
        for schema in schemas {
            fits |= self.attempt(*schema, value, track.as_deref_mut());
            if fits && track.is_none() {
                return true;
            }
        }
        fits || self.fail(value, || {
            "fits none of the forms that it may have".to_owned()
        })
    }

    fn one(
        &mut self,
        schemas: &[Id],
        value: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut fitting = 0_usize;
        for schema in schemas {
            fitting += usize::from(self.attempt(*schema, value, track.as_deref_mut()));
            if fitting > 1 {
                return self.fail(value, || {
                    "fits several of the forms of which it must have one".to_owned()
                });
            }
        }
        fitting == 1
            || self.fail(value, || {
                "fits none of the forms that it may have".to_owned()
            })
    }

    /// Returns whether a value fits a schema, without noting failures. The parts that a schema
    /// evaluated do not count when the value does not fit it.
    fn attempt(&mut self, schema: Id, value: Value<'_>, track: Option<&mut EvaluatedSet>) -> Fits {
        let mut evaluated = track.is_some().then(EvaluatedSet::default);
        let fits = self.quietly(|run| run.visit(schema, value, evaluated.as_mut()));
        if let (true, Some(track), Some(evaluated)) = (fits, track, &evaluated) {
            self.spend(evaluated.work());
            track.merge(evaluated);
        }
        fits
    }
}
