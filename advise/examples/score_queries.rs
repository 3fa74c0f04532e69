//! Prints every query of the score, with default settings, as a rule for promtool: `advise/tests/promtool/rules.yaml`.

use std::process::ExitCode;

use tidegate_advise::score::score_queries;

/// The defaults of `tidegate score`, in seconds.
const WINDOW: u32 = 3_600;
const STEP: u32 = 300;

fn main() -> ExitCode {
    match score_queries(WINDOW, STEP) {
        Ok(queries) => {
            println!(
                "# The queries of advise/src/score/queries.toml with default settings: generated for rules_test.yaml. `make docs` writes it."
            );
            println!("groups:\n- name: score\n  rules:");
            for query in queries {
                // Text in YAML: only the quote of YAML has to be doubled.
                let promql = query.promql.replace('\'', "''");
                println!("  - record: score:{}\n    expr: '{promql}'", query.name);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
