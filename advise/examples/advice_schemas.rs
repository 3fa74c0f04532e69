//! Prints the JSON schema of a document, for the files in `advise/schemas`.

use tidegate_advise::chain::FindingsDocument;
use tidegate_advise::recommend::advice_schema;

fn main() {
    let schema = match std::env::args().nth(1).as_deref() {
        Some("recommend") => advice_schema(),
        Some("analyze") => FindingsDocument::schema(),
        other => {
            eprintln!("found {other:?}, expected recommend or analyze");
            std::process::exit(2);
        }
    };
    println!("{schema:#}");
}
