//! Lookup tables as messages look them up: their entries are in parts, which one table shares with
//! the next.

use std::collections::HashMap;
use std::sync::Arc;

use kanat_plan_stream::parts;
use kanat_proto::plan::v1;

/// A lookup table.
#[derive(Debug)]
pub struct Table {
    pub id: String,
    pub name: String,
    /// At least one.
    parts: Vec<Arc<Part>>,
}

/// Some entries of a table, or all of them.
#[derive(Debug)]
pub struct Part {
    entries: HashMap<Box<str>, Box<str>>,
}

impl Table {
    /// Puts a table together of the parts that `part` finds by their resource ids. A table of a
    /// former build has its entries in its own resource.
    ///
    /// # Errors
    /// A part is missing; the text is for an operator.
    pub fn new<'p>(
        table: v1::LookupTable,
        part: impl Fn(&str) -> Option<&'p Arc<Part>>,
    ) -> Result<Self, String> {
        if table.parts == 0 {
            return Ok(Self {
                id: table.id,
                name: table.name,
                parts: vec![Arc::new(Part::new(table.entries))],
            });
        }
        let parts = parts::resource_ids(&table.id, table.parts).map(|id| {
            part(&id)
                .cloned()
                .ok_or_else(|| format!("its part {id:?} is not in the set"))
        });
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self {
            id: table.id,
            name: table.name,
            parts,
        })
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let part = match self.parts.as_slice() {
            [part] => part,
            parts => parts.get(parts::of_key(key, parts.len() as u32) as usize)?,
        };
        part.entries.get(key).map(AsRef::as_ref)
    }
}

impl Part {
    pub fn new(entries: Vec<v1::lookup_table::Entry>) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|entry| (entry.key.into(), entry.value.into()))
                .collect(),
        }
    }
}
