//! Prints the JSON schema of the graph's document: what `graph/schema.json` is made of.

use tidegate_graph::output::schema;

fn main() {
    println!("{:#}", schema());
}
