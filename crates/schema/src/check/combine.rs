//! Schemas that speak of the same value as the one that they stand in.

use super::evaluated::Evaluated;
use super::{Fits, Run, need};
use crate::document::Value;
use crate::node::{Applied, Id};

impl Run<'_> {
    pub(super) fn applied(
        &mut self,
        applied: &Applied,
        value: Value<'_>,
        mut track: Option<&mut Evaluated>,
    ) -> Fits {
        match applied {
            Applied::All(schemas) => {
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
            Applied::Any(schemas) => self.any(schemas, value, track),
            Applied::One(schemas) => self.one(schemas, value, track),
            Applied::Not(schema) => {
                let fits = self.quietly(|run| run.visit(*schema, value, None));
                !fits || self.fail(value, || "has a form that is ruled out here".to_owned())
            }
            Applied::If {
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
            Applied::Reference(schema) => self.visit(*schema, value, track),
            Applied::Dynamic { target, name } => {
                let dynamic = &self.program.dynamic;
                let found = self
                    .scope
                    .iter()
                    .find_map(|resource| dynamic.get(&(*resource, name.clone())));
                self.visit(found.copied().unwrap_or(*target), value, track)
            }
            Applied::Recursive { target } => {
                let recursive = &self.program.recursive;
                let found = self
                    .scope
                    .iter()
                    .find_map(|resource| recursive.get(resource));
                self.visit(found.copied().unwrap_or(*target), value, track)
            }
        }
    }

    fn any(&mut self, schemas: &[Id], value: Value<'_>, mut track: Option<&mut Evaluated>) -> Fits {
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

    fn one(&mut self, schemas: &[Id], value: Value<'_>, mut track: Option<&mut Evaluated>) -> Fits {
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

    /// Whether a value fits a schema, without noting why it does not. What a schema that does not
    /// fit has evaluated does not count.
    fn attempt(&mut self, schema: Id, value: Value<'_>, track: Option<&mut Evaluated>) -> Fits {
        let mut evaluated = track.is_some().then(Evaluated::default);
        let fits = self.quietly(|run| run.visit(schema, value, evaluated.as_mut()));
        if let (true, Some(track), Some(evaluated)) = (fits, track, &evaluated) {
            self.spend(evaluated.work());
            track.merge(evaluated);
        }
        fits
    }
}
