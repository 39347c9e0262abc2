//! Makes the column names of an answer unique, for formats that would lose a second column of the same name.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};

/// Returns the schema with unique names: `function`, `function_2`, `function_3`.
pub fn unique_names(schema: &SchemaRef) -> SchemaRef {
    let all: HashSet<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let mut used: HashSet<String> = HashSet::new();
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| {
            let name = field.name();
            if used.insert(name.clone()) {
                return Arc::clone(field);
            }
            let free = (2..)
                .map(|number| format!("{name}_{number}"))
                .find(|other| !all.contains(other.as_str()) && !used.contains(other))
                .expect("there are more numbers than columns");
            used.insert(free.clone());
            Arc::new(Field::clone(field).with_name(free))
        })
        .collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn a_name_that_is_taken_is_numbered() {
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        let names = ["a", "b", "a", "a_2", "a"];
        let schema = Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()));
        let unique = unique_names(&schema);
        let unique: Vec<_> = unique.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(unique, ["a", "b", "a_3", "a_2", "a_4"]);
    }
}
