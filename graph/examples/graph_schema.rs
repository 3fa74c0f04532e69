//! Prints the JSON schema of the graph's document, for `graph/schema.json`.

use tidegate_graph::output::schema;

fn main() {
    println!("{:#}", schema());
}
